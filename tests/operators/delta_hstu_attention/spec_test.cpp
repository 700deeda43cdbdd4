// The parameters, the signature and the work of delta_hstu_attention.
#include "compiler/spec/operators/delta_hstu_attention/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstujit {
namespace {

using ::testing::HasSubstr;

Json instance(const Json& extra = Json::object()) {
  Json json = {{"op", "delta_hstu_attention"}, {"attn_dim", 64}, {"hidden_dim", 32}};
  json.update(extra);
  return json;
}

OpSpecPtr parse(const Json& extra = Json::object()) {
  auto spec = parse_op_spec(instance(extra), "op");
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return *spec;
}

std::vector<std::string> names_of(const Signature& signature) {
  std::vector<std::string> names;
  for (const Argument& argument : signature) names.push_back(argument.name);
  return names;
}

std::string shape_of(const Signature& signature, std::string_view name) {
  return shape_text(signature[static_cast<size_t>(find_argument(signature, name))]);
}

TEST(DeltaHstuAttentionSpec, HasTheParametersOfHstuAttentionAndJaggedQueries) {
  std::vector<std::string_view> names = field_names<HstuAttentionParams>();
  names.push_back("jagged_queries");
  EXPECT_EQ(field_names<DeltaHstuAttentionParams>(), names);
  const Json schema = operator_schema("delta_hstu_attention")["properties"];
  for (const std::string_view name : names) EXPECT_TRUE(schema.contains(name)) << name;
  EXPECT_EQ(schema["max_attn_len"]["minimum"], -1);
  EXPECT_EQ(schema["jagged_queries"]["default"], false);
}

TEST(DeltaHstuAttentionSpec, CanonicalJsonRoundTrips) {
  for (const Json& extra :
       {Json::object(), Json{{"jagged_queries", true}}, Json{{"max_attn_len", -1}, {"causal", false}}}) {
    const Json json = parse(extra)->to_json();
    EXPECT_EQ(json["op"], "delta_hstu_attention");
    // With "op", and without the mask, operands, num_contexts, num_softmax_heads, softmax_score, attn_func and
    // attn_func_heads.
    EXPECT_EQ(json.size() + 6, field_names<DeltaHstuAttentionParams>().size());
    EXPECT_EQ(json["jagged_queries"], extra.value("jagged_queries", false));
    const auto again = parse_op_spec(json, "");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ((*again)->to_json().dump(), json.dump());
  }
}

TEST(DeltaHstuAttentionSpec, EqualMeaningsHaveOneForm) {
  EXPECT_EQ(parse({{"max_attn_len", -1}, {"causal", false}})->to_json(), parse({{"full_mask", true}})->to_json());
  EXPECT_EQ(parse({{"min_full_attn_seq_len", 9}})->to_json(), parse()->to_json()) << "no window to ignore";
  EXPECT_EQ(parse({{"drab", false}, {"dattn_scale", false}})->to_json(), parse()->to_json()) << "no operands";
}

TEST(DeltaHstuAttentionSpec, KeyTextIsWhatDiffersFromTheDefaults) {
  EXPECT_EQ(key_text(*parse()), R"({"op":"delta_hstu_attention","attn_dim":64,"hidden_dim":32})");
  EXPECT_EQ(key_text(*parse({{"jagged_queries", true}, {"heads", 4}})),
            R"({"op":"delta_hstu_attention","heads":4,"attn_dim":64,"hidden_dim":32,"jagged_queries":true})");
}

TEST(DeltaHstuAttentionSpec, MistakesAreSentences) {
  const auto error = [](const Json& extra) { return parse_op_spec(instance(extra), "ops[2]").status().message(); };
  EXPECT_EQ(error({{"jagged_queries", 1}}),
            "ops[2].jagged_queries is 1; allowed: true or false (launches take seq_offsets_q: sequences may have "
            "different numbers of rows in q)");
  EXPECT_THAT(error({{"jagged_query", true}}), HasSubstr("did you mean \"jagged_queries\"?"));
  EXPECT_THAT(error({{"target_group_size", 2}}), HasSubstr("ops[2].target_group_size is 2, but only targets"));
}

TEST(DeltaHstuAttentionSpec, FactorsAreOfRowsOfQAndTheBiasOfTheSequences) {
  const Json extra = {{"rab_heads", 1}, {"attn_scale", "rows"}};
  const Signature dense = parse(extra)->signature(Direction::kForward);
  EXPECT_EQ(shape_of(dense, "rab"), "(B, 1, max_seq_len, max_seq_len)");
  EXPECT_EQ(shape_of(dense, "attn_scale"), "(B*max_delta_len)");
  Json jagged = extra;
  jagged["jagged_queries"] = true;
  const Signature ragged = parse(jagged)->signature(Direction::kForward);
  EXPECT_EQ(names_of(ragged),
            (std::vector<std::string>{"q", "k", "v", "seq_offsets", "seq_offsets_q", "rab", "attn_scale", "max_seq_len",
                                      "max_delta_len", "alpha", "scaling_seqlen", "out"}));
  EXPECT_EQ(shape_of(ragged, "attn_scale"), "(Lq)");
}

TEST(DeltaHstuAttentionSpec, ADenseQHasTheSameRowsOfEachSequence) {
  const Signature signature = parse({{"heads", 3}, {"num_targets", true}})->signature(Direction::kForward);
  EXPECT_EQ(names_of(signature), (std::vector<std::string>{"q", "k", "v", "seq_offsets", "num_targets", "max_seq_len",
                                                           "max_delta_len", "alpha", "scaling_seqlen", "out"}));
  EXPECT_EQ(shape_of(signature, "q"), "(B*max_delta_len, 3, 64)");
  EXPECT_EQ(shape_of(signature, "k"), "(L, 3, 64)");
  EXPECT_EQ(shape_of(signature, "v"), "(L, 3, 32)");
  EXPECT_EQ(shape_of(signature, "out"), "(B*max_delta_len, 3, 32)");
  const Argument& max = signature[static_cast<size_t>(find_argument(signature, "max_delta_len"))];
  EXPECT_EQ(max.kind, ArgumentKind::kInt);
  EXPECT_EQ(max.max, kMaxSeqLen);
}

TEST(DeltaHstuAttentionSpec, AJaggedQHasOffsetsOfItsOwn) {
  const Signature signature =
      parse({{"jagged_queries", true}, {"offsets_dtype", "int32"}})->signature(Direction::kForward);
  EXPECT_EQ(names_of(signature), (std::vector<std::string>{"q", "k", "v", "seq_offsets", "seq_offsets_q", "max_seq_len",
                                                           "max_delta_len", "alpha", "scaling_seqlen", "out"}));
  EXPECT_EQ(shape_of(signature, "q"), "(Lq, 1, 64)");
  EXPECT_EQ(shape_of(signature, "k"), "(L, 1, 64)");
  EXPECT_EQ(shape_of(signature, "out"), "(Lq, 1, 32)");
  EXPECT_EQ(shape_of(signature, "seq_offsets_q"), "(B+1)");
  EXPECT_EQ(signature[0].shape[0].offsets, "seq_offsets_q");
  EXPECT_EQ(signature[1].shape[0].offsets, "seq_offsets");
  EXPECT_EQ(signature[static_cast<size_t>(find_argument(signature, "seq_offsets_q"))].dtype, DataType::kInt32);
}

TEST(DeltaHstuAttentionSpec, BackwardHasTheRowsOfQAndOfK) {
  for (const bool jagged : {false, true}) {
    const OpSpecPtr spec = parse({{"heads", 3},
                                  {"jagged_queries", jagged},
                                  {"rab_heads", 1},
                                  {"attn_scale", "rows"},
                                  {"operands", "w: row(grad)"},
                                  {"score", "silu(x * w[row])"}});
    ASSERT_TRUE(spec->supports(Direction::kBackward));
    const Signature signature = spec->signature(Direction::kBackward);
    std::vector<std::string> names = {"q", "k", "v", "dout", "seq_offsets"};
    if (jagged) names.emplace_back("seq_offsets_q");
    for (const char* name : {"rab", "attn_scale", "w", "max_seq_len", "max_delta_len", "alpha", "scaling_seqlen", "dq",
                             "dk", "dv", "drab", "dattn_scale", "dw"}) {
      names.emplace_back(name);
    }
    EXPECT_EQ(names_of(signature), names);
    const std::string rows = jagged ? "(Lq" : "(B*max_delta_len";
    EXPECT_EQ(shape_of(signature, "dout"), rows + ", 3, 32)");
    EXPECT_EQ(shape_of(signature, "dq"), rows + ", 3, 64)");
    EXPECT_EQ(shape_of(signature, "dattn_scale"), rows + ")");
    EXPECT_EQ(shape_of(signature, "dk"), "(L, 3, 64)");
    EXPECT_EQ(shape_of(signature, "dv"), "(L, 3, 32)");
    EXPECT_EQ(shape_of(signature, "drab"), "(B, 1, max_seq_len, max_seq_len)");
    EXPECT_EQ(shape_of(signature, "dw"), "(L)");
  }
}

// The pairs of the last rows, one by one.
int64_t pairs_of(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t delta) {
  int64_t pairs = 0;
  for (int64_t i = std::max<int64_t>(n - delta, 0); i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) pairs += hstu_attention_valid(params, i, j, n, t) ? 1 : 0;
  }
  return pairs;
}

TEST(DeltaHstuAttentionWork, CountsThePairsOfTheRowsOfQ) {
  std::vector<DeltaHstuAttentionParams> masks(7);
  masks[1].num_targets = true;
  masks[2].max_attn_len = 3;
  masks[2].contextual_seq_len = 2;
  masks[3].causal = false;
  masks[3].full_mask = true;
  masks[4].sla_k1 = 2;
  masks[4].sla_k2 = 1;
  masks[5].causal = false;
  masks[5].num_targets = true;
  masks[5].target_group_size = 2;
  masks[6].max_attn_len = 2;
  masks[6].min_full_attn_seq_len = 1;
  masks[6].num_targets = true;
  const Lengths lengths{{0, 1, 5, 11, 9, 4}, {0, 1, 2, 4, 0, 4}, 11, {{"Lq", {3, 0, 2, 11, 20, 1}}}};
  for (DeltaHstuAttentionParams& params : masks) {
    params.heads = 3;
    params.attn_dim = 16;
    params.hidden_dim = 8;
    params.jagged_queries = true;
    const DeltaHstuAttentionSpec spec(params);
    int64_t pairs = 0;
    for (size_t b = 0; b < lengths.rows.size(); ++b) {
      const int64_t targets = params.num_targets ? lengths.num_targets[b] : 0;
      pairs += pairs_of(params, lengths.rows[b], targets, lengths.rows_of("Lq")[b]);
    }
    const Work work = spec.work(Direction::kForward, lengths);
    EXPECT_EQ(work.flops, static_cast<double>(2 * 3 * (16 + 8) * pairs)) << spec.to_json().dump();
    EXPECT_EQ(work.bytes, 3 * (37 * (16 + 8) + 30 * (16 + 8)) * 2) << "q and out of 37 rows, k and v of 30";
    const Work backward = spec.work(Direction::kBackward, lengths);
    EXPECT_EQ(backward.flops, static_cast<double>(2 * 3 * (3 * 16 + 2 * 8) * pairs)) << spec.to_json().dump();
    EXPECT_EQ(backward.bytes, 3 * (37 * (2 * 16 + 8) + 30 * (2 * 16 + 2 * 8)) * 2)
        << "q, dout and dq of 37 rows, k, v, dk and dv of 30";
  }
}

}  // namespace
}  // namespace hstujit
