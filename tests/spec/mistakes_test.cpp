// Sentences about a config with mistakes: all of them, where each stands, and what was meant.
#include "compiler/spec/mistakes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <set>

#include "compiler/spec/config.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"
#include "tests/paths.h"

namespace hstujit {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

// The lines that are said of a config.
std::vector<std::string> lines_of(const std::string& text) {
  const Status status = parse_config(text, "m.json", "").status();
  EXPECT_EQ(status.code(), Code::kInvalidConfig) << text;
  return split(status.message(), '\n');
}

// Lines about one entry, with what every attention needs but `fields`.
std::vector<std::string> lines_of_entry(const std::string& fields) {
  return lines_of(R"({"version": 1, "ops": [{"name": "a", "op": "hstu_attention", "max_seq_len": 8, )" + fields +
                  "}]}");
}

TEST(Mistakes, ALongNameIsShortenedAndStandsWhereItsObjectDoes) {
  const std::string name(2000, 'x');
  const std::string start = "m.json:1:25: ops[0]." + std::string(113, 'x') + "... (value 1) is not a known field";
  EXPECT_THAT(
      lines_of(R"({"version": 1, "ops": [ {"name": "a", "op": "silu", "width": 8, "rows": 1, ")" + name + R"(": 1}]})"),
      ElementsAre(StartsWith(start)));
}

// Sentence about the field `name`, which `op` lacks; empty where it has the field.
std::string about_field(const std::string& op, const std::string& name) {
  const std::string mark = "." + name + " (value 1) is not a known field of " + op;
  for (const std::string& line : lines_of(
           fmt::format(R"({{"version": 1, "ops": [{{"name": "a", "op": "{}", "{}": 1, "x.y": 1}}]}})", op, name))) {
    if (const size_t at = line.find(mark); at != std::string::npos) return line.substr(at + mark.size());
  }
  return "";
}

bool is_understood(const std::string& said) {
  return said.empty() || said.find("did you mean") != std::string::npos ||
         said.find("it is an argument of each launch") != std::string::npos;
}

TEST(Mistakes, NamesOfThePublicPackagesAreUnderstood) {
  const auto text = read_file(source_path("/tests/compatibility/signatures.json"), size_t{1} << 20);
  ASSERT_TRUE(text.ok());
  const std::map<std::string, std::string> operators = {{"hstu_mha", "hstu_attention"},
                                                        {"hstu_mha_cuda", "hstu_attention"},
                                                        {"delta_hstu_mha", "delta_hstu_attention"},
                                                        {"hstu_split_l2_embeddings", "split_2d_jagged"},
                                                        {"hstu_concat_l2_embeddings", "concat_2d_jagged"},
                                                        {"concat_2D_jagged", "concat_2d_jagged"},
                                                        {"concat_2D_jagged_multirow", "concat_2d_jagged"},
                                                        {"split_2D_jagged", "split_2d_jagged"},
                                                        {"split_2D_jagged_multirow", "split_2d_jagged"}};
  // How the packages do it.
  const std::set<std::string> theirs = {"enable_tma", "sort_by_length", "prefill"};
  int asked = 0;
  for (const auto& package : Json::parse(*text)) {
    for (const auto& module : package["functions"]) {
      for (const auto& [function, signature] : module.items()) {
        const auto renamed = operators.find(function);
        const std::string op = renamed == operators.end() ? function : renamed->second;
        for (const std::string& argument : split(signature.get<std::string>(), ',')) {
          const size_t begin = argument.find_first_not_of(' ');
          const std::string name = argument.substr(begin, argument.find('=') - begin);
          if (theirs.contains(name)) continue;
          if (op == "hstu_compute_uqvk" && name == "recompute_uvqk_in_backward") continue;  // attention keeps it here
          ++asked;
          EXPECT_TRUE(is_understood(about_field(op, name))) << op << " " << name << about_field(op, name);
        }
      }
    }
  }
  EXPECT_GT(asked, 200);
}

TEST(Mistakes, NamesOfTheModulesAndThePapersCodeAreUnderstood) {
  const std::vector<std::array<std::string, 3>> names = {{"stu_layer", "recompute_uvqk_in_backward", "recompute_uvqk"},
                                                         {"stu_layer", "recompute_y_in_backward", "recompute_y"},
                                                         {"stu_layer", "is_inference", "training"},
                                                         {"stu_layer", "rel_attn_bias", "rab_heads"},
                                                         {"stu_layer", "linear_dropout_rate", "dropout"},
                                                         {"stu_layer", "max_num_contextuals", "contextual_seq_len"},
                                                         {"stu_stack", "num_layers", "layers"},
                                                         {"stu_stack", "num_hidden_layers", "layers"},
                                                         {"hstu_attention", "is_inference", "directions"},
                                                         {"split_2d_jagged", "n_prefix_from_right", "prefix"}};
  for (const auto& [op, name, meant] : names)
    EXPECT_THAT(about_field(op, name), HasSubstr("\"" + meant + "\"")) << op << " " << name;
  EXPECT_THAT(about_field("stu_layer", "num_layers"), Not(HasSubstr("did you mean")));
}

TEST(Mistakes, AllOfThemAreSaidEachWithItsPlace) {
  EXPECT_THAT(lines_of(R"({
  "version": 2,
  "tuning": {"budget_s": -1, "exhaustiv": true},  // two of them
  "ops": [
    {"name": "a/b", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 260,
     "max_seq_len": [64, 0],
     "lengths": {"low": 2}},
    {"name": "b", "op": "hstu_atention"},
    7
  ],
  "extra": 1
})"),
              ElementsAre(StartsWith("m.json:2:14: version is 2; allowed: 1"),
                          StartsWith("m.json:3:26: tuning.budget_s is -1; allowed: a number"),
                          StartsWith("m.json:3:30: tuning.exhaustiv (value true) is not a known field, did you mean "
                                     "\"exhaustive\"?"),
                          StartsWith("m.json:5:14: ops[0].name is \"a/b\"; allowed: letters"),
                          StartsWith("m.json:5:75: ops[0].hidden_dim is 260; allowed: an integer"),
                          StartsWith("m.json:6:26: ops[0].max_seq_len[1] is 0; allowed: an integer"),
                          StartsWith("m.json:7:25: ops[0].lengths.low is 2; allowed: a number"),
                          StartsWith("m.json:8:25: ops[1].op is \"hstu_atention\", did you mean \"hstu_attention\"?"),
                          StartsWith("m.json:9:5: ops[2] is 7; allowed: a JSON object"),
                          StartsWith("m.json:11:3: extra (value 1) is not a known field")));
}

TEST(Mistakes, RulesBetweenFieldsAreAllChecked) {
  EXPECT_THAT(lines_of_entry(R"("attn_dim": 64, "hidden_dim": 64, "heads": 4,
 "rab_heads": 3,
 "target_group_size": 2,
 "dtype": "fp32",
 "alignment": 2,
 "directions": ["forward", "sideways"])"),
              ElementsAre(StartsWith("m.json:2:15: ops[0].rab_heads is 3, but heads share the bias heads evenly"),
                          StartsWith("m.json:3:23: ops[0].target_group_size is 2, but only targets come in groups"),
                          StartsWith("m.json:5:15: ops[0].alignment is 2, but an element of fp32 has 4 bytes"),
                          StartsWith("m.json:6:28: ops[0].directions[1] is \"sideways\"; allowed")));
}

// A rule is broken whatever the wrong field is, or nothing is said of it.
TEST(Mistakes, RulesBetweenFieldsAreCheckedBesideWrongOnes) {
  const std::string dims = R"("attn_dim": 64, "hidden_dim": 64, )";
  EXPECT_THAT(lines_of_entry(dims + R"("score": "softmax",
 "target_group_size": 2,
 "alignment": 2, "dtype": "fp32")"),
              ElementsAre(HasSubstr("ops[0].score is \"softmax\"; allowed"),
                          HasSubstr("ops[0].target_group_size is 2, but only targets come in groups"),
                          HasSubstr("ops[0].alignment is 2, but an element of fp32 has 4 bytes")));
  EXPECT_THAT(lines_of_entry(dims + R"("num_targets": "yes", "target_group_size": 2)"),
              ElementsAre(HasSubstr("ops[0].num_targets is \"yes\"; allowed")));
  EXPECT_THAT(lines_of_entry(dims + R"("num_target": true, "target_group_size": 2)"),
              ElementsAre(HasSubstr("ops[0].num_target (value true) is not a known field")));
  EXPECT_THAT(lines_of_entry(dims + R"("heads": 0, "rab_heads": 3)"), ElementsAre(HasSubstr("ops[0].heads is 0")));
  EXPECT_THAT(lines_of_entry(dims + R"("dtype": "fp64", "alignment": 2)"), ElementsAre(HasSubstr("ops[0].dtype is")));
  EXPECT_THAT(lines_of_entry(R"("sla_k1": 8, "causal": false)"),
              ElementsAre(HasSubstr("ops[0].attn_dim is missing"), HasSubstr("ops[0].hidden_dim is missing"),
                          HasSubstr("ops[0].causal is false, but semi-local attention")));
  EXPECT_THAT(lines_of(R"({"version": 1, "ops": [{"name": "a", "op": "split_2d_jagged", "max_seq_len": 8,
 "dense_left": true, "dense_right": true, "prefix": 3}]})"),
              testing::UnorderedElementsAre(HasSubstr("ops[0].width is missing"), HasSubstr("ops[0].prefix is 3"),
                                            HasSubstr("ops[0].dense_right is true, but dense_left is, too")));
}

// Advice that would lead to the next mistake is none.
TEST(Mistakes, OneFieldHasOneSentence) {
  const char* const rank = R"("attn_dim": 64, "hidden_dim": 64, "target_group_size": 2, )";
  EXPECT_THAT(lines_of_entry(std::string(rank) + R"("sla_k1": 4)"),
              ElementsAre(HasSubstr("target_group_size is 2, but semi-local attention")));
  EXPECT_THAT(lines_of_entry(std::string(rank) + R"("full_mask": true)"),
              ElementsAre(HasSubstr("target_group_size is 2, but only targets come in groups, and with no mask")));
  EXPECT_THAT(
      lines_of_entry(std::string(rank) + R"("num_targets": -1)"),
      ElementsAre(HasSubstr("num_targets is -1; allowed: true, false, or how many of them generated inputs have, "
                            "an integer from 0 to 268435456")));
}

// A number where launches take it: the sentence names the argument.
TEST(Mistakes, WhatLaunchesTakeIsNamed) {
  const auto line = [](const std::string& fields) {
    return lines_of(R"({"version": 1, "ops": [{"name": "a", )" + std::string(fields) + "}]}").front();
  };
  EXPECT_THAT(line(R"("op": "hstu_norm_mul_dropout", "width": 8, "rows": 8, "dropout": 0.1)"),
              HasSubstr("dropout is 0.1; allowed: true or false (launches take dropout_ratio, "));
  EXPECT_THAT(
      line(R"("op": "hstu_norm_mul_dropout", "width": 8, "rows": 8, "dropout_ratio": 0.1)"),
      HasSubstr(
          "dropout_ratio (value 0.1) is not a known field of hstu_norm_mul_dropout; it is an argument of each launch"));
  EXPECT_THAT(line(R"("op": "jagged_to_padded_dense", "width": 8, "max_seq_len": 8, "padding_value": 1.5)"),
              HasSubstr("padding_value is 1.5; allowed: true or false (launches take padding_value, "));
  EXPECT_THAT(
      line(R"("op": "hstu_attention", "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8, "batch_size": 4)"),
      HasSubstr("batch_size (value 4) is not a known field of hstu_attention, did you mean \"lengths.batch\"?"));
  for (const auto& [field, meant] : {std::pair("max_lengths", "max_seq_len"),
                                     {"num_kv_heads", "heads"},
                                     {"attn_mask", "causal"},
                                     {"deterministic", "tuning.deterministic"}}) {
    EXPECT_THAT(line(fmt::format(R"("op": "hstu_attention", "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8, "{}": 1)",
                                 field)),
                HasSubstr(fmt::format("{} (value 1) is not a known field of hstu_attention, did you mean \"{}\"?",
                                      field, meant)));
  }
  EXPECT_THAT(lines_of(R"({"version": 1, "dtype": "bf16", "ops": []})").front(),
              HasSubstr("dtype (value \"bf16\") is not a known field, did you mean \"defaults.dtype\"?"));
}

TEST(Mistakes, WhoeverAsksForTheDropoutThatThereIsNotIsTold) {
  const auto line = [](const std::string& fields) {
    return lines_of(R"({"version": 1, "ops": [{"name": "a", )" + fields + "}]}").front();
  };
  for (const char* name : {"dropout", "dropout_p", "linear_dropout_rate"})
    EXPECT_THAT(line(R"("op": "delta_hstu_attention", "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8, ")" +
                     std::string(name) + "\": 0.1"),
                EndsWith(std::string(name) +
                         " (value 0.1) is not a known field of delta_hstu_attention, which has no dropout"));
  EXPECT_THAT(
      line(R"("dropout_p": true, "op": "stu_layer", "width": 8, "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8)"),
      HasSubstr("dropout_p (value true) is not a known field of stu_layer; it is an argument of each launch, did you "
                "mean \"dropout\"?"));
}

TEST(Mistakes, WhoeverAsksForTheBackwardThatThereIsNotIsTold) {
  const auto line = [](const char* fields) {
    return lines_of(R"({"version": 1, "ops": [{"name": "a", "training": true, )" + std::string(fields) + "}]}").front();
  };
  EXPECT_THAT(line(R"("op": "cached_stu_layer", "width": 8, "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8)"),
              EndsWith("training (value true) is not a known field of cached_stu_layer, which has no backward"));
  EXPECT_THAT(line(R"("op": "silu", "width": 8, "rows": 8)"),
              EndsWith("training (value true) is not a known field of silu, did you mean \"directions\"?"));
}

TEST(Mistakes, TwentyAreSaidAndTheOthersCounted) {
  std::string entries;
  for (int i = 0; i < 23; ++i) {
    entries += fmt::format(
        "{}\n{{\"name\": \"n{}\", \"op\": \"hstu_attention\", \"attn_dim\": 8, \"hidden_dim\": 8, "
        "\"max_seq_len\": 0}}",
        i == 0 ? "" : ",", i);
  }
  const auto lines = lines_of("{\"version\": 1, \"ops\": [" + entries + "]}");
  ASSERT_THAT(lines, SizeIs(21));
  EXPECT_THAT(lines[19], StartsWith("m.json:21:"));
  EXPECT_EQ(lines[20], "m.json: and 3 more");
}

TEST(Mistakes, AMistakeInTheDefaultsIsSaidOnceAndThere) {
  EXPECT_THAT(lines_of(R"({"version": 1,
 "defaults": {"op": "hstu_attention", "max_seq_len": 8, "attn_dim": 64, "hidden_dim": 64,
  "heads": 0, "lengths": {"bach": 3}},
 "ops": [{"name": "a"}, {"name": "b"}, {"name": "c", "heads": 2, "lengths": [1]}, {"name": "d", "heads": -1}]})"),
              ElementsAre(AllOf(StartsWith("m.json:3:12: defaults.heads is 0; allowed: an integer"),
                                HasSubstr("; ops[0] takes it")),
                          StartsWith("m.json:3:27: defaults.lengths.bach (value 3) is not a known field, did you mean "
                                     "\"batch\"?"),
                          StartsWith("m.json:4:106: ops[3].heads is -1; allowed")));
}

TEST(Mistakes, AFieldUnderAnotherNameIsNotMissedToo) {
  const auto lines = lines_of_entry(R"("num_heads": 4, "head_dim": 64)");
  EXPECT_THAT(
      lines,
      ElementsAre(
          HasSubstr("ops[0].num_heads (value 4) is not a known field of hstu_attention, did you mean \"heads\"?"),
          HasSubstr("ops[0].head_dim (value 64) is not a known field of hstu_attention, did you mean \"attn_dim\" "
                    "and \"hidden_dim\"?")));
  EXPECT_THAT(lines_of(R"({"version": 1, "defaults": {"head_dim": 64}, "ops": [{"name": "a",
                           "op": "hstu_attention", "max_seq_len": 8}]})"),
              ElementsAre(HasSubstr("defaults.head_dim (value 64) is not a known field")));
  EXPECT_THAT(lines_of_entry(R"("attn_dim": 64)"), ElementsAre(HasSubstr("ops[0].hidden_dim is missing; allowed")));
}

// Nothing is made of a parameter that is not known: a program's steps would have sizes of their own to say.
TEST(Mistakes, AFieldUnderAnotherNameIsTheOnlyMistakeOfItsOperator) {
  for (const std::string_view op : operator_names()) {
    const Json schema = operator_schema(op);
    const auto config_with = [&](const std::string& other, const char* size) {
      Json entry = {{"name", "a"}, {"op", op}, {size, 8}};
      for (const Json& required : schema["required"]) {
        auto name = required.get<std::string>();
        const Json least = schema["properties"][name]["minimum"];
        if (name == other) std::transform(name.begin(), name.end(), name.begin(), ::toupper);
        entry[name] = least;
      }
      return Json({{"version", 1}, {"ops", Json::array({entry})}}).dump();
    };
    const char* const size = parse_config(config_with("", "rows"), "m", "").ok() ? "rows" : "max_seq_len";
    EXPECT_TRUE(parse_config(config_with("", size), "m", "").ok()) << op;
    for (const Json& field : schema["required"])
      EXPECT_THAT(lines_of(config_with(field.get<std::string>(), size)),
                  ElementsAre(HasSubstr("is not a known field of")))
          << op << " without " << field;
  }
}

TEST(Mistakes, ADirectionWithoutKernelSaysWhatThereIs) {
  EXPECT_THAT(lines_of(R"({"version": 1, "ops": [{"name": "a", "op": "complete_cumsum",
 "rows": 8, "directions": ["forward", "backward"]}]})"),
              ElementsAre("m.json:2:39: ops[0].directions[1] is \"backward\", but complete_cumsum has no backward "
                          "kernel; allowed: \"forward\""));
}

TEST(Mistakes, ADirectionThatAParameterRulesOutNamesIt) {
  EXPECT_THAT(
      lines_of(R"({"version": 1, "ops": [{"name": "a", "op": "split_2d_jagged", "width": 8, "left_only": true,
 "prefix": true, "max_seq_len": 8, "directions": ["backward"]}]})"),
      ElementsAre("m.json:2:51: ops[0].directions[0] is \"backward\", but split_2d_jagged with left_only=true has "
                  "no backward kernel; allowed: \"forward\", or left_only=false"));
}

TEST(Mistakes, ABareListHasPlacesToo) {
  EXPECT_THAT(
      lines_of("[{\"name\": \"a\", \"op\": \"hstu_attention\", \"attn_dim\": 8,\n \"hidden_dim\": 8, \"max_seq_len\": "
               "0}, 3]"),
      ElementsAre(StartsWith("m.json:2:34: [0].max_seq_len is 0; allowed"),
                  StartsWith("m.json:2:38: [1] is 3; allowed")));
}

TEST(Mistakes, NamesThatAreNoWordsStayOnOneLine) {
  EXPECT_THAT(lines_of("{\"version\": 1, \"ops\": 1, \"a\\nb.c\": 2}"),
              ElementsAre(HasSubstr("ops is 1; allowed"), StartsWith("m.json:1:26: [\"a\\nb.c\"] (value 2) is not")));
  const auto lines = lines_of("{\"version\": 1, \"ops\": 1, \"" + std::string(5000, 'x') + "\": 2}");
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_LT(lines[1].size(), 400u);
}

TEST(Mistakes, ADeviceFileHasPlacesOfItsOwn) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const std::string file = (folder->path() / "board.json").string();
  std::ofstream(file) << "{\"name\": \"Board\",\n \"arch\": \"sm_90a\", \"sm_count\": 0, \"shared_memory\": -1}";
  const Status status = load_device_spec(file).status();
  EXPECT_THAT(split(status.message(), '\n'), ElementsAre(StartsWith(file + ":2:32: sm_count is 0; allowed"),
                                                         StartsWith(file + ":2:52: shared_memory is -1; allowed")));
}

// Numbers beyond the range of integers lost their last digits, 1e3 was 1000.0.
TEST(Mistakes, NumbersAreShownAsTheyAreWritten) {
  for (const char* number : {"18446744073709551615", "-9223372036854775809", "1e3", "2.50", "0", "1E+400"}) {
    const std::string text =
        fmt::format(R"({{"version": 1, "ops": [{{"name": "a", "op": "layer_norm", "width": {}}}]}})", number);
    EXPECT_THAT(parse_config(text, "test", "").status().message(),
                HasSubstr(std::string_view(number) == "1E+400" ? "the number 1E+400 is out of range"
                                                               : fmt::format(".width is {}; allowed: ", number)));
  }
}

// Names in `dtype` alone were understood, and none in a dtype of integers.
TEST(Mistakes, NamesOfDataTypesAreUnderstoodInEveryField) {
  const auto error = [](const std::string& fields) {
    return parse_config(R"({"version": 1, "ops": [{"name": "a", )" + fields + "}]}", "test", "").status().message();
  };
  for (const auto& [written, meant] : {std::pair("float32", "fp32"),
                                       {"bfloat16", "bf16"},
                                       {"half", "fp16"},
                                       {"float", "fp32"},
                                       {"torch.float32", "fp32"}}) {
    EXPECT_THAT(error(fmt::format(R"("op": "layer_norm", "width": 8, "rows": 3, "weight_dtype": "{}")", written)),
                HasSubstr(fmt::format("weight_dtype is \"{}\", did you mean \"{}\"?", written, meant)));
  }
  for (const auto& [written, meant] :
       {std::pair("long", "int64"), {"int", "int32"}, {"i64", "int64"}, {"torch.int64", "int64"}}) {
    EXPECT_THAT(error(fmt::format(R"("op": "complete_cumsum", "rows": 3, "dtype": "{}")", written)),
                HasSubstr(fmt::format(".dtype is \"{}\", did you mean \"{}\"?", written, meant)));
  }
}

TEST(Mistakes, ValuesOfOtherProgramsAreUnderstood) {
  const auto said = [](const std::string& fields, const std::string& meant) {
    EXPECT_THAT(lines_of_entry(R"("attn_dim": 64, "hidden_dim": 64, )" + fields),
                ElementsAre(HasSubstr(", did you mean \"" + meant + "\"?; allowed: ")))
        << fields;
  };
  said(R"("dtype": "bfloat16")", "bf16");
  said(R"("dtype": "torch.bfloat16")", "bf16");
  said(R"("dtype": "BF16")", "bf16");
  said(R"("dtype": "float16")", "fp16");
  said(R"("dtype": "half")", "fp16");
  said(R"("dtype": "float32")", "fp32");
  said(R"("offsets_dtype": "torch.int64")", "int64");
  said(R"("precision": "highest")", "ieee");
  said(R"("score": "SiLU")", "silu");
  said(R"("score": "swish")", "silu");
  said(R"("directions": ["fwd"])", "forward");
  said(R"("dtype": "bf")", "bf16");
  for (const char* none : {R"("dtype": "fp8")", R"("dtype": "fp")", R"("dtype": 3)", R"("directions": ["both"])"}) {
    const auto lines = lines_of_entry(R"("attn_dim": 64, "hidden_dim": 64, )" + std::string(none));
    ASSERT_THAT(lines, SizeIs(1)) << none;
    EXPECT_EQ(lines[0].find("did you mean"), std::string::npos) << lines[0];
  }
  EXPECT_THAT(lines_of(R"({"version": 1, "device": "sm_90", "ops": []})")[0],
              HasSubstr("device \"sm_90\" is not known, and there is no DeviceSpec file of that name, did you mean "
                        "\"sm_90a\"?; allowed: "));
  EXPECT_THAT(lines_of(R"({"version": 1, "tuning": {"length_mode": "pow"}, "ops": []})")[0],
              HasSubstr("tuning.length_mode is \"pow\", did you mean \"pow2\"?; allowed: "));
  EXPECT_THAT(lines_of(R"([{"name": "a", "op": "hstu_norm_mul_dropout", "width": 8, "rows": 1,
                            "mul_u_activation": "swish"}])"),
              ElementsAre(HasSubstr("mul_u_activation is \"swish\", did you mean \"silu\"?; allowed: ")));
  EXPECT_THAT(lines_of(R"({"version": 1, "ops": [{"name": "a", "op": "hstu", "max_seq_len": 8}]})"),
              ElementsAre(HasSubstr("ops[0].op is \"hstu\", did you mean \"hstu_attention\"?; allowed: ")));
  EXPECT_THAT(lines_of(R"({"version": 1, "ops": [{"name": "a", "op": "concat_jagged", "max_seq_len": 8}]})"),
              ElementsAre(HasSubstr("ops[0].op is \"concat_jagged\", did you mean \"concat_2d_jagged\"?; allowed: ")));
}

TEST(Mistakes, NamesOfOtherProgramsAreUnderstood) {
  const auto said = [](const std::string& field, const std::string& meant) {
    const auto lines = lines_of_entry(R"("attn_dim": 64, "hidden_dim": 64, ")" + field + "\": 1");
    EXPECT_THAT(lines,
                ElementsAre(HasSubstr("is not a known field of hstu_attention, did you mean \"" + meant + "\"?")))
        << field;
  };
  said("n_heads", "heads");
  said("contextual", "contextual_seq_len");
  said("num_attention_heads", "heads");
  said("seqlen", "max_seq_len");
  said("sm_scale", "alpha");
  said("is_causal", "causal");
  said("window_size", "max_attn_len");
  said("activation", "score");
  said("torch_dtype", "dtype");
  said("allow_tf32", "precision");
  said("linear_dim", "hidden_dim");
  said("attention_dim", "attn_dim");
}

}  // namespace
}  // namespace hstujit
