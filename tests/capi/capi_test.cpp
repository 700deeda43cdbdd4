// The C API through libhstujit.so: layouts, callbacks, and what it says of operators, configs and itself. Needs no GPU
// and no compiler library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "hstujit/hstujit.hpp"
#include "tests/capi/capi_fixture.h"

namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// The layout of published structs never changes; new members go to the end.
TEST(Abi, StructsKeepTheirLayout) {
  EXPECT_EQ(hstujit_abi_version(), HSTUJIT_ABI_VERSION);
  EXPECT_EQ(sizeof(hstujit_value), 8u);
  EXPECT_EQ(sizeof(hstujit_text), 16u);
  EXPECT_EQ(sizeof(hstujit_problem), 24u);
  EXPECT_EQ(sizeof(hstujit_argument), 24u);
  EXPECT_EQ(offsetof(hstujit_argument, output), 20u);
  EXPECT_EQ(sizeof(hstujit_context_options), 56u);
  EXPECT_EQ(offsetof(hstujit_context_options, deterministic), 48u);
  EXPECT_EQ(sizeof(hstujit_run_options), 112u);
  EXPECT_EQ(sizeof(hstujit_op_options), 24u);
  EXPECT_EQ(sizeof(hstujit_given), 32u);
  EXPECT_EQ(sizeof(hstujit_call_argument), 48u);
  EXPECT_EQ(sizeof(hstujit_call_rows), 24u);
  EXPECT_EQ(sizeof(hstujit_error_fields), 40u);
  EXPECT_EQ(sizeof(hstujit_cache_export_options), 16u);
  EXPECT_EQ(offsetof(hstujit_run_options, seed), 64u);
  EXPECT_EQ(offsetof(hstujit_run_options, progress_user), 88u);
}

TEST_F(CapiTest, NoCallbackIsCalledOnceTheyAreStopped) {
  // In a process of its own: there is no way back.
  EXPECT_EXIT(
      {
        static int calls = 0;
        auto options = HSTUJIT_INIT(hstujit_run_options);
        options.arch = "H200";
        options.check = 1;
        options.progress = [](void*, size_t, size_t, const char*) {
          if (++calls == 1) hstujit_callbacks_stop();  // of all but this one it would wait for
        };
        hstujit_config* config = nullptr;
        hstujit_config_parse(R"([{"name": "a", "op": "silu", "width": 8, "rows": 3},
                                 {"name": "b", "op": "silu", "width": 16, "rows": 3}])",
                             "mine.json", &config);
        hstujit_text report = {};
        hstujit_prewarm(context_, config, &options, &report);
        std::exit(calls);
      },
      testing::ExitedWithCode(1), "");
}

TEST_F(CapiTest, ASignatureNeedsNoContext) {
  hstujit_op* op = nullptr;
  ASSERT_EQ(hstujit_op_create(context_, kOp, HSTUJIT_BACKWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_OK);
  hstujit_text of_op = {}, alone = {};
  ASSERT_EQ(hstujit_op_signature(op, &of_op), HSTUJIT_OK);
  hstujit_op_destroy(op);
  ASSERT_EQ(hstujit_instance_signature(kOp, HSTUJIT_BACKWARD, &alone), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(parse(&of_op), parse(&alone));
  const char* const wrong = R"({"op": "silu", "width": 0})";
  EXPECT_EQ(hstujit_instance_signature(wrong, HSTUJIT_FORWARD, &alone), HSTUJIT_INVALID_CONFIG);
  const std::string sentence = hstujit_last_error();
  EXPECT_EQ(hstujit_op_create(context_, wrong, HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_INVALID_CONFIG);
  EXPECT_EQ(sentence, hstujit_last_error());
  EXPECT_EQ(hstujit_instance_signature(nullptr, HSTUJIT_FORWARD, &alone), HSTUJIT_INVALID_ARGUMENT);
}

TEST_F(CapiTest, OptionsOfAnOpAreChecked) {
  hstujit_op* op = nullptr;
  auto options = HSTUJIT_INIT(hstujit_op_options);
  options.deterministic = 1;
  ASSERT_EQ(hstujit_op_create_with(context_, kOp, &options, &op), HSTUJIT_OK) << hstujit_last_error();
  hstujit_op_destroy(op);
  options.deterministic = 2;
  EXPECT_EQ(hstujit_op_create_with(context_, kOp, &options, &op), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_STREQ(hstujit_last_error(), "deterministic is 2; it must be 0 or 1");
  EXPECT_EQ(hstujit_op_create_with(context_, kOp, nullptr, &op), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("options is a null pointer"));
}

TEST_F(CapiTest, AnInstanceMayAskForAKernelForSmallBatches) {
  hstujit_op* op = nullptr;
  const std::string rest = R"(", "heads": 2, "attn_dim": 64, "hidden_dim": 64, "small_batches": true})";
  EXPECT_EQ(hstujit_op_create(context_, (R"({"op": "hstu_attention)" + rest).c_str(), HSTUJIT_FORWARD,
                              HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_OK)
      << hstujit_last_error();
  hstujit_op_destroy(op);
  EXPECT_EQ(hstujit_op_create(context_, (R"({"op": "delta_hstu_attention)" + rest).c_str(), HSTUJIT_FORWARD,
                              HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_INVALID_CONFIG);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("small_batches (value true) is not a known field"));
}

TEST_F(CapiTest, ARecordingIsForTuningOnly) {
  const std::string path = cache_ + "/misses";
  const std::string line =
      R"({"hstujit_miss": 1, "op": "hstu_attention", "spec": )" + std::string(kOp) +
      R"(, "direction": "forward", "device": "NVIDIA H200", "arch": "sm_90a", "sm_count": 132, "bucket": 10240,
  "length": 10240, "length_mode": "fine", "reason": "untuned"})";
  ASSERT_TRUE(hstujit::append_line(path, json::parse(line).dump()).ok());
  hstujit_config* recording = nullptr;
  ASSERT_EQ(hstujit_config_load_recording(path.c_str(), &recording), HSTUJIT_OK) << hstujit_last_error();
  hstujit_text text = {};
  ASSERT_EQ(hstujit_config_describe(recording, &text), HSTUJIT_OK);
  const json instance = parse(&text)["instances"][0];
  EXPECT_EQ(instance["max_seq_len"], json({10240}));
  EXPECT_EQ(hstujit_prewarm(context_, recording, nullptr, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(hstujit_last_error(), "config is the recording " + path + "; only tune takes one");
  hstujit_text_free(&text);
  hstujit_op* op = nullptr;
  EXPECT_EQ(hstujit_op_from_config(context_, recording, instance["name"].get<std::string>().c_str(), HSTUJIT_FORWARD,
                                   HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_INVALID_ARGUMENT);
  hstujit_config_destroy(recording);
  EXPECT_EQ(hstujit_config_load_recording("/nowhere/misses", &recording), HSTUJIT_NOT_FOUND);
}

TEST_F(CapiTest, SignaturesAreDescribed) {
  hstujit_op* op = nullptr;
  ASSERT_EQ(hstujit_op_create(context_, kOp, HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_OK)
      << hstujit_last_error();
  hstujit_text text = {};
  ASSERT_EQ(hstujit_op_signature(op, &text), HSTUJIT_OK);
  const json signature = parse(&text);
  EXPECT_EQ(signature[0]["name"], "q");
  EXPECT_EQ(signature[0]["shape"], json({"L", 2, 64}));
  EXPECT_EQ(hstujit_op_argument(op, "out"), static_cast<int>(signature.size()) - 1);
  EXPECT_EQ(hstujit_op_argument(op, "nothing"), -1);
  for (const json& argument : signature) {
    const std::string name = argument["name"];
    const bool is_bounded = name == "max_seq_len" || name == "scaling_seqlen";
    EXPECT_EQ(argument.value("max", int64_t{0}), is_bounded ? int64_t{1} << 28 : 0) << name;
    EXPECT_EQ(argument.contains("min"), is_bounded) << name;
    EXPECT_EQ(argument.value("min", int64_t{0}), name == "scaling_seqlen" ? -1 : 0) << name;
  }
  hstujit_value values[8] = {};
  EXPECT_EQ(hstujit_launch(op, values, 8, nullptr, 0, nullptr), HSTUJIT_NOT_PREPARED);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("call prepare before launch"));
  hstujit_op_destroy(op);
}

TEST_F(CapiTest, ArgumentsAreFoundByNameAndListedByPosition) {
  hstujit_op* op = nullptr;
  ASSERT_EQ(hstujit_op_create(context_, kOp, HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_OK)
      << hstujit_last_error();
  hstujit_text text = {};
  ASSERT_EQ(hstujit_op_signature(op, &text), HSTUJIT_OK);
  const json signature = parse(&text);
  ASSERT_EQ(hstujit_op_argument_count(op), static_cast<int>(signature.size()));
  const char* const kinds[] = {"tensor", "float", "int"};
  for (int i = 0; i < hstujit_op_argument_count(op); ++i) {
    hstujit_argument argument = HSTUJIT_INIT(hstujit_argument);
    ASSERT_EQ(hstujit_op_argument_at(op, i, &argument), HSTUJIT_OK) << hstujit_last_error();
    EXPECT_EQ(argument.size, sizeof(argument));
    EXPECT_EQ(argument.name, signature[i]["name"]);
    EXPECT_EQ(kinds[argument.kind], signature[i]["kind"]);
    EXPECT_EQ(argument.output != 0, signature[i]["role"] == "output");
    int position = -1;
    ASSERT_EQ(hstujit_op_find_argument(op, argument.name, &position), HSTUJIT_OK) << hstujit_last_error();
    EXPECT_EQ(position, i);
  }

  int position = -1;
  EXPECT_EQ(hstujit_op_find_argument(op, "offsets", &position), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_STREQ(hstujit_last_error(),
               "hstu_attention forward has no argument \"offsets\", did you mean \"seq_offsets\"?; allowed: q, k, v, "
               "seq_offsets, max_seq_len, alpha, scaling_seqlen, out");
  EXPECT_EQ(hstujit_op_find_argument(op, "apha", &position), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("\"apha\", did you mean \"alpha\"?; allowed: q, "));
  EXPECT_EQ(hstujit_op_find_argument(op, nullptr, &position), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(hstujit_op_find_argument(nullptr, "q", &position), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(hstujit_op_find_argument(op, "q", nullptr), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(position, -1);
  hstujit_argument argument = HSTUJIT_INIT(hstujit_argument);
  for (const int wrong : {-1, 8}) {
    EXPECT_EQ(hstujit_op_argument_at(op, wrong, &argument), HSTUJIT_INVALID_ARGUMENT);
    EXPECT_EQ(hstujit_last_error(), "position is " + std::to_string(wrong) + "; allowed: 0 to 7");
  }
  EXPECT_EQ(hstujit_op_argument_at(nullptr, 0, &argument), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(hstujit_op_argument_at(op, 0, nullptr), HSTUJIT_INVALID_ARGUMENT);
  argument.size = 16;
  EXPECT_EQ(hstujit_op_argument_at(op, 0, &argument), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("hstujit_argument.size is 16; it must be 24 or more"));
  EXPECT_EQ(hstujit_op_argument_count(nullptr), 0);
  hstujit_op_destroy(op);
}

TEST_F(CapiTest, AnOpWithoutListedLengthsHasBucketsOfAnyLength) {
  setenv("HSTUJIT_LENGTH_MODE", "static", 1);
  hstujit_context* const context = make_context();
  unsetenv("HSTUJIT_LENGTH_MODE");
  json listing = json::parse(kOp);
  listing["max_seq_len"] = {300, 700};
  for (const auto& [text, bucket] :
       {std::pair<std::string, const char*>{kOp, "(bucket 500)"}, {listing.dump(), "(bucket 700)"}}) {
    hstujit_op* op = nullptr;
    ASSERT_EQ(hstujit_op_create(context, text.c_str(), HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_OK)
        << hstujit_last_error();
    hstujit_value values[8] = {};
    values[hstujit_op_argument(op, "max_seq_len")].integer = 500;
    EXPECT_EQ(hstujit_launch(op, values, 8, nullptr, 0, nullptr), HSTUJIT_NOT_PREPARED);
    EXPECT_THAT(hstujit_last_error(), HasSubstr(bucket));
    hstujit_op_destroy(op);
  }
  hstujit_context_destroy(context);
}

TEST_F(CapiTest, BackwardTakesDoutAndReturnsThreeGradients) {
  hstujit_op* op = nullptr;
  ASSERT_EQ(hstujit_op_create(context_, kOp, HSTUJIT_BACKWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_OK)
      << hstujit_last_error();
  hstujit_text text = {};
  ASSERT_EQ(hstujit_op_signature(op, &text), HSTUJIT_OK);
  const json signature = parse(&text);
  std::vector<std::string> outputs;
  for (const json& argument : signature) {
    if (argument["role"] == "output") outputs.push_back(argument["name"]);
  }
  EXPECT_EQ(outputs, (std::vector<std::string>{"dq", "dk", "dv"}));
  EXPECT_EQ(signature[3]["name"], "dout");
  EXPECT_EQ(hstujit_op_argument(op, "out"), -1);
  hstujit_op_destroy(op);

  constexpr char kCumsum[] = R"({"op": "complete_cumsum"})";
  EXPECT_EQ(hstujit_op_create(context_, kCumsum, HSTUJIT_BACKWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_UNSUPPORTED);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("is \"backward\", but complete_cumsum has no backward kernel"));
}

TEST_F(CapiTest, TheLibraryDescribesItself) {
  hstujit_text text = {};
  ASSERT_EQ(hstujit_operators(&text), HSTUJIT_OK);
  const json operators = parse(&text);
  ASSERT_FALSE(operators.empty());
  std::map<std::string, std::set<std::string>> names;  // of optional arguments, by operator
  for (const json& op : operators) {
    for (const json& call : op["calls"]) {
      EXPECT_FALSE(call["arguments"].empty()) << op["op"];
      for (const json& argument : call["arguments"]) {
        if (argument.value("optional", false)) names[op["op"]].insert(argument["name"]);
      }
    }
  }
  const std::map<std::string, std::set<std::string>> conditional = {
      {"hstu_attention", {"num_targets", "rab", "attn_scale", "num_contexts", "drab", "dattn_scale"}},
      {"delta_hstu_attention", {"seq_offsets_q", "num_targets", "rab"}},
      {"hstu_norm_mul_dropout", {"dropout_ratio", "seed", "offset"}},
      {"add_timestamp_positional_embeddings", {"query_time", "num_targets"}},
      {"concat_2d_jagged", {"max_len_left", "max_len_right", "n_prefix_from_right"}},
      {"split_2d_jagged", {"max_len_left", "max_len_right", "n_prefix_to_right"}},
      {"jagged_to_padded_dense", {"padding_value"}},
  };
  for (const auto& [op, arguments] : conditional) {
    for (const std::string& name : arguments) EXPECT_TRUE(names[op].contains(name)) << op << " " << name;
  }
  const auto call_of = [&](const char* name, const char* direction) -> const json& {
    const auto found =
        std::find_if(operators.begin(), operators.end(), [&](const json& op) { return op["op"] == name; });
    return found->at("calls").at(direction);
  };
  EXPECT_EQ(call_of("split_2d_jagged", "forward")["forward_only"], json({"left_only"}));
  const json& attention = call_of("hstu_attention", "backward");
  EXPECT_EQ(attention["sizes"]["attn_dim"][0], (json{{"argument", "q"}, {"axis", 2}}));
  EXPECT_EQ(attention["dtypes"]["offsets_dtype"], json({"seq_offsets", "num_targets", "num_contexts"}));
  EXPECT_EQ(attention["presence"]["num_targets"], (json{{"given", {"num_targets"}}, {"left_out", json::array()}}));
  EXPECT_EQ(attention["forms"]["attn_scale"][1], (json{{"value", "scalar"}, {"shape", {1}}}));
  EXPECT_EQ(attention["alignment"], "alignment");
  std::map<std::string, json> arguments;
  for (const json& argument : attention["arguments"]) arguments[argument["name"]] = argument;
  EXPECT_EQ(arguments["q"]["shape"], json({"L", "heads", "attn_dim"}));
  EXPECT_EQ(arguments["scaling_seqlen"]["usual"], 0);
  EXPECT_EQ(arguments["dout"]["gradient_of"], "out");
  EXPECT_EQ(arguments["drab"]["gradient_of"], "rab");
  EXPECT_EQ(arguments["drab"]["wanted"], "drab");
  const json& product = call_of("addmm", "backward");
  EXPECT_EQ(product["sizes"]["k"][2], (json{{"argument", "mat2"}, {"axis", 1}, {"when", "transpose_mat2"}}));
  EXPECT_EQ(
      product["passed_on"][0],
      (json{
          {"argument", "input"}, {"output", "out"}, {"factor", "beta"}, {"parameter", "input"}, {"value", "matrix"}}));
  ASSERT_EQ(hstujit_config_schema(&text), HSTUJIT_OK);
  EXPECT_TRUE(parse(&text).contains("properties"));
  ASSERT_EQ(hstujit_environment(&text), HSTUJIT_OK);
  EXPECT_EQ(parse(&text)[0]["name"], "HSTUJIT_CACHE_DIR");
  EXPECT_STREQ(hstujit_status_name(HSTUJIT_CACHE_MISS), "cache_miss");
}

TEST_F(CapiTest, ConfigsAreDescribedAndInstancesFound) {
  const auto config = hstujit::api::Config::parse(kConfig);
  hstujit_text text = {};
  ASSERT_EQ(hstujit_config_describe(config.get(), &text), HSTUJIT_OK);
  const json description = parse(&text);
  EXPECT_EQ(description["device"]["arch"], "sm_90a");
  EXPECT_EQ(description["instances"][0]["rows"], json({278, 322}));
  hstujit_op* op = nullptr;
  EXPECT_EQ(hstujit_op_from_config(context_, config.get(), "other", HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_NOT_FOUND);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("ranker"));
}

}  // namespace
