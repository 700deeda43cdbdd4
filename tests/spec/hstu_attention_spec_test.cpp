#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "compiler/spec/fields_json.h"
#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// The smallest instance, with `extra` over it.
Json instance(const Json& extra = Json::object()) {
  Json json;
  json["op"] = "hstu_attention";
  json["attn_dim"] = 64;
  json["hidden_dim"] = 64;
  json.update(extra);
  return json;
}

std::string error_of(const char* extra) {
  const auto result = parse_op_spec(instance(Json::parse(extra)), "ops[2]");
  EXPECT_FALSE(result.ok()) << extra;
  if (result.ok()) return "";
  EXPECT_EQ(result.status().code(), Code::kInvalidConfig);
  return result.status().message();
}

Json canonical(const char* extra) {
  const auto result = parse_op_spec(instance(Json::parse(extra)), "op");
  EXPECT_TRUE(result.ok()) << extra << ": " << result.status().message();
  return result.ok() ? (*result)->to_json() : Json();
}

int64_t signature_max(std::string_view argument) {
  const Signature signature = HstuAttentionSpec({.attn_dim = 8, .hidden_dim = 8}).signature(Direction::kForward);
  return signature[static_cast<size_t>(find_argument(signature, argument))].max;
}

TEST(HstuAttentionSpec, CanonicalJsonHasEveryFieldInOrderAndRoundTrips) {
  const Json json = canonical("{}");
  EXPECT_EQ(json.begin().key(), "op");
  // "op", and without "mask", "operands", "num_contexts", "num_softmax_heads", "softmax_score", "attn_func" and
  // "attn_func_heads"
  EXPECT_EQ(json.size() + 6, field_names<HstuAttentionParams>().size());
  const auto again = parse_op_spec(json, "");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ((*again)->to_json().dump(), json.dump());
  const Json full = canonical(R"({"full_mask": true})");
  EXPECT_EQ((*parse_op_spec(full, ""))->to_json().dump(), full.dump());
}

TEST(HstuAttentionSpec, KeyTextIsWhatDiffersFromTheDefaults) {
  const auto text_of = [](const std::string& text) {
    const auto spec = parse_op_spec(Json::parse(text), "");
    EXPECT_TRUE(spec.ok()) << spec.status().message();
    const std::string key = key_text(**spec);
    const auto again = parse_op_spec(Json::parse(key), "");
    EXPECT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ((*again)->to_json(), (*spec)->to_json());
    return key;
  };
  const std::string plain = R"({"op":"hstu_attention","heads":2,"attn_dim":64,"hidden_dim":32})";
  EXPECT_EQ(text_of(plain), plain);
  EXPECT_EQ(text_of(R"({"op": "hstu_attention", "hidden_dim": 32, "dtype": "bf16", "heads": 2, "max_attn_len": 0,
                        "attn_dim": 64, "score": "silu"})"),
            plain);
  EXPECT_EQ(text_of(R"({"op": "hstu_attention", "hidden_dim": 32, "attn_dim": 64, "heads": 2, "max_attn_len": 5,
                        "dtype": "fp16", "num_targets": true})"),
            R"({"op":"hstu_attention","heads":2,"attn_dim":64,"hidden_dim":32,"dtype":"fp16","num_targets":true,)"
            R"("max_attn_len":5})");
}

TEST(HstuAttentionSpec, SentencesNamePathValueAndWhatIsAllowed) {
  EXPECT_EQ(error_of(R"({"heads": 0})"),
            "ops[2].heads is 0; allowed: an integer from 1 to 1024 (number of attention heads H)");
  EXPECT_EQ(error_of(R"({"attn_dim": 257})"),
            "ops[2].attn_dim is 257; allowed: an integer from 1 to 256 (head dimension of q and k)");
  EXPECT_THAT(error_of(R"({"heads": 2.5})"), StartsWith("ops[2].heads is 2.5; allowed: an integer from 1"));
  EXPECT_THAT(error_of(R"({"heads": 18446744073709551615})"),
              StartsWith("ops[2].heads is 18446744073709551615; allowed"));
  EXPECT_EQ(error_of(R"({"dtype": "int32"})"),
            "ops[2].dtype is \"int32\"; allowed: bf16, fp16, fp32 (data type of q, k, v and out)");
  EXPECT_THAT(error_of(R"({"causal": 1})"), StartsWith("ops[2].causal is 1; allowed: true or false"));
  EXPECT_THAT(error_of(R"({"score": "softmax"})"),
              StartsWith("ops[2].score is \"softmax\"; allowed: silu, relu, relu2, sigmoid"));
  EXPECT_EQ(error_of(R"({"max_atn_len": 5})"),
            "ops[2].max_atn_len (value 5) is not a known field, did you mean \"max_attn_len\"?");
  EXPECT_THAT(error_of(R"({"zzzzzzzzzzzz": 5})"),
              StartsWith("ops[2].zzzzzzzzzzzz (value 5) is not a known field; allowed: heads"));
  EXPECT_THAT(parse_op_spec(Json::parse(R"({"op": "hstu_attention"})"), "").status().message(),
              StartsWith("attn_dim is missing; allowed"));
  EXPECT_THAT(parse_op_spec(Json::parse(R"({"op": "softmax"})"), "x").status().message(),
              AllOf(StartsWith("x.op is \"softmax\"; allowed: "), HasSubstr("hstu_attention")));
  EXPECT_THAT(parse_op_spec(Json::parse("{}"), "").status().message(), StartsWith("op is missing; allowed: "));
}

TEST(HstuAttentionSpec, RulesBetweenFields) {
  EXPECT_EQ(error_of(R"({"alignment": 12})"),
            "ops[2].alignment is 12; allowed: 2, 4, 8, 16 (bytes that data pointers and strides are multiples of)");
  EXPECT_THAT(error_of(R"({"dtype": "fp32", "alignment": 2})"), HasSubstr("an element of fp32 has 4 bytes"));
  EXPECT_THAT(error_of(R"({"target_group_size": 2})"),
              HasSubstr("target_group_size is 2, but only targets come in groups"));
  EXPECT_THAT(error_of(R"({"full_mask": true, "causal": true})"), HasSubstr("causal is true, but with no mask"));
  EXPECT_THAT(error_of(R"({"full_mask": true, "num_targets": true})"),
              HasSubstr("num_targets is set, but with no mask"));
  EXPECT_THAT(error_of(R"({"full_mask": true, "max_attn_len": 3})"), HasSubstr("max_attn_len is 3, but with no mask"));
  EXPECT_THAT(error_of(R"({"full_mask": true, "contextual_seq_len": 3})"),
              HasSubstr("contextual_seq_len is 3, but with no mask"));
  EXPECT_THAT(error_of(R"({"full_mask": true, "sla_k1": 3})"), HasSubstr("sla_k1 is 3, but with no mask"));
  EXPECT_THAT(error_of(R"({"max_attn_len": -1})"),
              HasSubstr("max_attn_len is -1, but that means no mask and needs causal=false"));
  EXPECT_THAT(error_of(R"({"max_attn_len": -1, "causal": false, "full_mask": false})"),
              HasSubstr("full_mask is false, but max_attn_len -1"));
  EXPECT_THAT(error_of(R"({"max_attn_len": -2, "causal": false})"),
              StartsWith("ops[2].max_attn_len is -2; allowed: an integer from -1 to "));
  EXPECT_THAT(error_of(R"({"sla_k1": 2, "max_attn_len": 4})"),
              HasSubstr("max_attn_len is 4, but semi-local attention"));
  EXPECT_THAT(error_of(R"({"sla_k1": 2, "causal": false})"), HasSubstr("causal is false, but semi-local attention"));
  EXPECT_THAT(error_of(R"({"sla_k1": 2, "num_targets": true, "target_group_size": 2})"),
              HasSubstr("target_group_size is 2, but semi-local attention"));
}

TEST(HstuAttentionSpec, BiasHeadsAreSharedEvenly) {
  EXPECT_EQ(error_of(R"({"heads": 4, "rab_heads": 3})"),
            "ops[2].rab_heads is 3, but heads share the bias heads evenly; allowed: 0, or a divisor of heads, which is "
            "4");
  EXPECT_THAT(error_of(R"({"heads": 4, "rab_heads": 8})"), HasSubstr("rab_heads is 8, but heads share"));
  EXPECT_THAT(error_of(R"({"attn_scale": "row"})"),
              StartsWith("ops[2].attn_scale is \"row\", did you mean \"rows\"?; allowed: none, rows, scalar"));
  for (const char* heads : {"0", "1", "2", "4"}) {
    EXPECT_EQ(canonical((R"({"heads": 4, "rab_heads": )" + std::string(heads) + "}").c_str())["rab_heads"],
              std::stoi(heads));
  }
}

TEST(HstuAttentionSpec, CountsOfRowsAreBounded) {
  for (const std::string name :
       {"target_group_size", "max_attn_len", "min_full_attn_seq_len", "contextual_seq_len", "sla_k1", "sla_k2"}) {
    EXPECT_THAT(
        error_of((R"({"num_targets": true, ")" + name + R"(": 268435457})").c_str()),
        AllOf(StartsWith("ops[2]." + name + " is 268435457; allowed: an integer from "), HasSubstr(" to 268435456")));
  }
  EXPECT_EQ(signature_max("max_seq_len"), kMaxSeqLen);
}

TEST(HstuAttentionSpec, EqualMeaningsHaveOneForm) {
  EXPECT_EQ(canonical(R"({"precision": "ieee"})"), canonical("{}"));
  EXPECT_EQ(canonical(R"({"attn_dim": 25})"), canonical(R"({"attn_dim": 25, "alignment": 2})"));
  EXPECT_EQ(canonical(R"({"attn_dim": 50})")["alignment"], 4);
  EXPECT_NE(canonical(R"({"precision": "ieee", "dtype": "fp32"})"), canonical(R"({"dtype": "fp32"})"));
  EXPECT_EQ(canonical(R"({"min_full_attn_seq_len": 5})"), canonical("{}"));
  EXPECT_NE(canonical(R"({"min_full_attn_seq_len": 5, "max_attn_len": 9})"), canonical(R"({"max_attn_len": 9})"));
  EXPECT_EQ(canonical(R"({"sla_k1": 4, "contextual_seq_len": 3})"), canonical(R"({"sla_k1": 4, "sla_k2": 3})"));
  EXPECT_EQ(canonical(R"({"causal": false, "max_attn_len": -1})"), canonical(R"({"full_mask": true})"));
  EXPECT_EQ(canonical(R"({"drab": false, "dattn_scale": false})"), canonical("{}"));
  EXPECT_EQ(canonical(R"({"rab_heads": 1, "dattn_scale": false})"), canonical(R"({"rab_heads": 1})"));
  EXPECT_EQ(canonical(R"({"attn_scale": "rows", "drab": false})"), canonical(R"({"attn_scale": "rows"})"));
  EXPECT_NE(canonical(R"({"rab_heads": 1, "drab": false})"), canonical(R"({"rab_heads": 1})"));
  EXPECT_NE(canonical(R"({"attn_scale": "rows", "dattn_scale": false})"), canonical(R"({"attn_scale": "rows"})"));
  EXPECT_EQ(canonical(R"({"adds_gradients": true})"), canonical("{}"));
  EXPECT_EQ(canonical(R"({"adds_gradients": true, "rab_heads": 1, "drab": false})"),
            canonical(R"({"rab_heads": 1, "drab": false})"));
  EXPECT_NE(canonical(R"({"adds_gradients": true, "rab_heads": 1})"), canonical(R"({"rab_heads": 1})"));
  EXPECT_FALSE(canonical(R"({"rab_heads": 1})").contains("adds_gradients")) << "keys of what adds nothing stay";
  const Json no_window = canonical(R"({"num_targets": true})");
  EXPECT_EQ(canonical(R"({"num_targets": true, "max_attn_len": 268435456})"), no_window);
  EXPECT_EQ(canonical(R"({"num_targets": true, "max_attn_len": 9, "min_full_attn_seq_len": 268435456})"), no_window);
  EXPECT_NE(canonical(R"({"num_targets": true, "max_attn_len": 268435455})"), no_window);
  EXPECT_EQ(canonical(R"({"causal": false, "full_mask": true, "max_attn_len": -1})"),
            canonical(R"({"full_mask": true})"));
}

TEST(HstuAttentionSpec, SignatureFollowsTheParameters) {
  const HstuAttentionSpec plain({.heads = 2, .attn_dim = 32, .hidden_dim = 48});
  const HstuAttentionSpec targets(
      {.heads = 2, .attn_dim = 32, .hidden_dim = 48, .offsets_dtype = DataType::kInt32, .num_targets = true});
  std::vector<std::string> names;
  for (const Argument& argument : targets.signature(Direction::kForward)) names.push_back(argument.name);
  EXPECT_EQ(names, (std::vector<std::string>{"q", "k", "v", "seq_offsets", "num_targets", "max_seq_len", "alpha",
                                             "scaling_seqlen", "out"}));
  EXPECT_EQ(plain.signature(Direction::kForward).size(), 8u);
  EXPECT_EQ(find_argument(plain.signature(Direction::kForward), "num_targets"), -1);
  const Argument out = targets.signature(Direction::kForward).back();
  EXPECT_EQ(out.role, ArgumentRole::kOutput);
  EXPECT_EQ(to_string(out.shape[0]), "L");
  EXPECT_EQ(to_string(out.shape[2]), "48");
  EXPECT_EQ(to_string(targets.signature(Direction::kForward)[3].shape[0]), "B+1");
  EXPECT_EQ(targets.signature(Direction::kForward)[3].dtype, DataType::kInt32);
  EXPECT_TRUE(plain.supports(Direction::kForward));
}

TEST(HstuAttentionSpec, BackwardTakesTheGradientOfOutAndReturnsThoseOfTheInputs) {
  const HstuAttentionSpec spec(
      {.heads = 2, .attn_dim = 32, .hidden_dim = 48, .dtype = DataType::kFp16, .num_targets = true});
  ASSERT_TRUE(spec.supports(Direction::kBackward));
  const Signature signature = spec.signature(Direction::kBackward);
  std::vector<std::string> names, outputs;
  for (const Argument& argument : signature) {
    names.push_back(argument.name);
    if (argument.role == ArgumentRole::kOutput) outputs.push_back(argument.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"q", "k", "v", "dout", "seq_offsets", "num_targets", "max_seq_len",
                                             "alpha", "scaling_seqlen", "dq", "dk", "dv"}));
  EXPECT_EQ(outputs, (std::vector<std::string>{"dq", "dk", "dv"}));
  const Signature forward = spec.signature(Direction::kForward);
  const std::pair<const char*, const char*> like[] = {{"dout", "out"}, {"dq", "q"}, {"dk", "k"}, {"dv", "v"}};
  for (const auto& [gradient, of] : like) {
    const Argument& a = signature[static_cast<size_t>(find_argument(signature, gradient))];
    const Argument& b = forward[static_cast<size_t>(find_argument(forward, of))];
    EXPECT_EQ(shape_text(a), shape_text(b)) << gradient;
    EXPECT_EQ(a.dtype, b.dtype) << gradient;
    EXPECT_EQ(a.alignment, b.alignment) << gradient;
  }
}

TEST(HstuAttentionSpec, WorkCountsValidPairsAndBytesOnce) {
  const HstuAttentionSpec spec({.heads = 2, .attn_dim = 16, .hidden_dim = 8});
  const Lengths lengths{{3, 1}, {}, 4};
  const Work forward = spec.work(Direction::kForward, lengths), backward = spec.work(Direction::kBackward, lengths);
  EXPECT_EQ(forward.flops, 2 * 2 * (16 + 8) * 7);
  EXPECT_EQ(forward.bytes, 4 * 2 * (16 + 16 + 8 + 8) * 2);
  EXPECT_EQ(backward.flops, 2 * 2 * (3 * 16 + 2 * 8) * 7);
  EXPECT_EQ(backward.bytes, 4 * 2 * (4 * 16 + 3 * 8) * 2);
}

TEST(HstuAttentionSpec, WorkCountsTheBiasOfTheRowsAndItsWholeGradient) {
  HstuAttentionParams params{.heads = 4, .attn_dim = 16, .hidden_dim = 8};
  const Lengths lengths{{3, 1}, {}, 5};
  const auto bytes = [&](Direction direction) { return HstuAttentionSpec(params).work(direction, lengths).bytes; };
  const double forward = bytes(Direction::kForward), backward = bytes(Direction::kBackward);
  params.rab_heads = 2;
  EXPECT_EQ(bytes(Direction::kForward) - forward, 2 * (9 + 1) * 2);
  EXPECT_EQ(bytes(Direction::kBackward) - backward, 2 * (9 + 1) * 2 + 2 * (2 * 25) * 2);
  params.drab = false;
  EXPECT_EQ(bytes(Direction::kBackward) - backward, 2 * (9 + 1) * 2);
  params.rab_heads = 0;
  params.attn_scale = "rows";
  EXPECT_EQ(bytes(Direction::kForward) - forward, 4 * 4);
  EXPECT_EQ(bytes(Direction::kBackward) - backward, 2 * 4 * 4);
  params.attn_scale = "scalar";
  params.dattn_scale = false;
  EXPECT_EQ(bytes(Direction::kBackward) - backward, 4);
}

TEST(HstuAttentionSpec, ABiasAndFactorsAreArgumentsWithGradientsOfTheirShape) {
  HstuAttentionParams params{.heads = 4,
                             .attn_dim = 16,
                             .hidden_dim = 8,
                             .dtype = DataType::kFp16,
                             .alignment = 4,
                             .num_targets = true,
                             .rab_heads = 2,
                             .attn_scale = "rows"};
  const auto signature_of = [&](Direction direction) { return HstuAttentionSpec(params).signature(direction); };
  const auto names_of = [&](Direction direction) {
    std::vector<std::string> names;
    for (const Argument& argument : signature_of(direction)) names.push_back(argument.name);
    return names;
  };
  EXPECT_EQ(names_of(Direction::kForward),
            (std::vector<std::string>{"q", "k", "v", "seq_offsets", "num_targets", "rab", "attn_scale", "max_seq_len",
                                      "alpha", "scaling_seqlen", "out"}));
  EXPECT_EQ(
      names_of(Direction::kBackward),
      (std::vector<std::string>{"q", "k", "v", "dout", "seq_offsets", "num_targets", "rab", "attn_scale", "max_seq_len",
                                "alpha", "scaling_seqlen", "dq", "dk", "dv", "drab", "dattn_scale"}));
  const Signature backward = signature_of(Direction::kBackward);
  const auto named = [&](std::string_view name) {
    return backward[static_cast<size_t>(find_argument(backward, name))];
  };
  for (const char* name : {"rab", "drab"}) {
    EXPECT_EQ(shape_text(named(name)), "(B, 2, max_seq_len, max_seq_len)");
    EXPECT_EQ(named(name).dtype, DataType::kFp16);
    EXPECT_EQ(named(name).alignment, 4);
  }
  for (const char* name : {"attn_scale", "dattn_scale"}) {
    EXPECT_EQ(shape_text(named(name)), "(L)");
    EXPECT_TRUE(named(name).shape[0].is_jagged());
    EXPECT_EQ(named(name).dtype, DataType::kFp32);
  }
  EXPECT_EQ(named("drab").role, ArgumentRole::kOutput);
  EXPECT_EQ(named("dattn_scale").role, ArgumentRole::kOutput);
  EXPECT_EQ(named("drab").in_place, "");
  params.adds_gradients = true;
  const Signature adding = signature_of(Direction::kBackward);
  for (const std::string name : {"drab", "dattn_scale"}) {
    const Argument& output = adding[static_cast<size_t>(find_argument(adding, name))];
    const Argument& before = adding[static_cast<size_t>(find_argument(adding, name + "_before"))];
    EXPECT_EQ(output.in_place, before.name);
    EXPECT_EQ(shape_text(output), shape_text(before));
    EXPECT_EQ(output.dtype, before.dtype);
  }
  EXPECT_LT(find_argument(signature_of(Direction::kForward), "drab_before"), 0);
  const std::vector<OpSpec::TunedAlike> alike = HstuAttentionSpec(params).tuned_alike();
  params.adds_gradients = false;
  ASSERT_EQ(alike.size(), 1u);
  EXPECT_EQ(key_text(*alike[0].spec), key_text(HstuAttentionSpec(params)));
  params.drab = params.dattn_scale = false;
  EXPECT_EQ(names_of(Direction::kBackward).back(), "dv");
  params.attn_scale = "scalar";
  const Argument one = signature_of(Direction::kForward)[6];
  EXPECT_EQ(one.name + shape_text(one), "attn_scale(1)");
}

}  // namespace
}  // namespace hstujit
