// The C API through libhstujit.so: statuses, sentences, struct sizes, reports. Needs no GPU and no compiler library.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "compiler/support/files.h"
#include "hstujit/hstujit.hpp"

namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kOp[] = R"({"op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64})";
constexpr char kConfig[] = R"({"version": 1, "device": "sm_90a", "ops": [
  {"name": "ranker", "op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": [256, 300],
   "lengths": [5, 17, 300]}]})";

class CapiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::make_unique<hstujit::TempDir>(hstujit::TempDir::create().value());
    cache_ = folder_->path().string();
    context_ = make_context();
  }

  hstujit_context* make_context(hstujit_miss_policy policy = HSTUJIT_ON_MISS_DEFAULT) {
    hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
    options.cache_dir = cache_.c_str();
    options.cache_path = "";
    options.on_miss = policy;
    hstujit_context* context = nullptr;
    EXPECT_EQ(hstujit_context_create(&options, &context), HSTUJIT_OK) << hstujit_last_error();
    return context;
  }

  // Makes the context anew, with a compiler that every build has.
  void use_fake_compiler() {
    hstujit_text text = {};
    ASSERT_EQ(hstujit_doctor(context_, &text), HSTUJIT_OK) << hstujit_last_error();
    const std::string generator = parse(&text)["library"]["generator"];
    hstujit_context_destroy(context_);
    ::setenv("HSTUJIT_COMPILER_LIBRARY", HSTUJIT_FAKE_COMPILER, 1);
    ::setenv("FAKE_COMPILER_GENERATOR", generator.c_str(), 1);
    ::setenv("FAKE_COMPILER_SCRIPT", "{}", 1);
    context_ = make_context();
  }

  void TearDown() override {
    hstujit_context_destroy(context_);
    for (const char* name : {"HSTUJIT_COMPILER_LIBRARY", "FAKE_COMPILER_GENERATOR", "FAKE_COMPILER_SCRIPT"})
      ::unsetenv(name);
  }

  // By parsing, so that nothing outlives the text.
  static json parse(hstujit_text* text) {
    json result = json::parse(text->data, text->data + text->size);
    hstujit_text_free(text);
    return result;
  }

  std::unique_ptr<hstujit::TempDir> folder_;
  std::string cache_;
  hstujit_context* context_ = nullptr;
};

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
  EXPECT_EQ(sizeof(hstujit_run_options), 104u);
  EXPECT_EQ(sizeof(hstujit_cache_export_options), 16u);
  EXPECT_EQ(offsetof(hstujit_run_options, seed), 64u);
  EXPECT_EQ(offsetof(hstujit_run_options, progress_user), 88u);
}

TEST_F(CapiTest, NullPointersAreSentences) {
  EXPECT_EQ(hstujit_context_create(nullptr, nullptr), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_STREQ(hstujit_last_error(), "out is a null pointer; it must be where the handle goes");
  hstujit_op* op = nullptr;
  EXPECT_EQ(hstujit_op_create(nullptr, kOp, HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("context is a null pointer"));
  EXPECT_EQ(hstujit_op_create(context_, nullptr, HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("json is a null pointer"));
  EXPECT_EQ(hstujit_launch(nullptr, nullptr, 0, nullptr, 0, nullptr), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(hstujit_prepare(nullptr, nullptr), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(hstujit_doctor(context_, nullptr), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(hstujit_op_argument(nullptr, "q"), -1);
  hstujit_context_destroy(nullptr);
  hstujit_config_destroy(nullptr);
  hstujit_op_destroy(nullptr);
  hstujit_text_free(nullptr);
}

TEST_F(CapiTest, UnsetStructSizesAreRefused) {
  hstujit_context_options options = {};
  hstujit_context* context = nullptr;
  EXPECT_EQ(hstujit_context_create(&options, &context), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("hstujit_context_options.size is 0; it must be 48 or more"));
  options.size = 40;
  EXPECT_EQ(hstujit_context_create(&options, &context), HSTUJIT_INVALID_ARGUMENT) << "no version had that size";
  for (size_t within = 49; within < 56; ++within) {
    options.size = within;
    EXPECT_EQ(hstujit_context_create(&options, &context), HSTUJIT_INVALID_ARGUMENT);
    EXPECT_EQ(hstujit_last_error(), "hstujit_context_options.size is " + std::to_string(within) +
                                        "; it must be 48 or more, a multiple of 8, set it with HSTUJIT_INIT");
  }
  options.size = sizeof(options) + 64;
  EXPECT_EQ(hstujit_context_create(&options, &context), HSTUJIT_OK) << "a newer caller";
  hstujit_context_destroy(context);
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

TEST_F(CapiTest, LastErrorIsTheThreads) {
  EXPECT_EQ(hstujit_config_parse("{", "mine.json", nullptr), HSTUJIT_INVALID_ARGUMENT);
  const std::string here = hstujit_last_error();
  std::string there = "not asked";
  std::thread([&] { there = hstujit_last_error(); }).join();
  EXPECT_NE(here, "");
  EXPECT_EQ(there, "");
}

TEST_F(CapiTest, BadJsonNamesItsPlace) {
  hstujit_op* op = nullptr;
  EXPECT_EQ(hstujit_op_create(context_, R"({"op": "hstu_attention", "heads": 0, "attn_dim": 64, "hidden_dim": 64})",
                              HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_INVALID_CONFIG);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("heads is 0"));
  hstujit_config* config = nullptr;
  EXPECT_EQ(hstujit_config_parse("{ bad", "mine.json", &config), HSTUJIT_INVALID_CONFIG);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("mine.json"));
  EXPECT_EQ(hstujit_config_parse("{ bad", "", &config), HSTUJIT_INVALID_CONFIG);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("config:1:3"));
  EXPECT_EQ(hstujit_config_load("/nowhere/config.json", &config), HSTUJIT_NOT_FOUND);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("/nowhere/config.json"));
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
  EXPECT_EQ(hstujit_last_error(), "config is the recording " + path + "; only hstujit_tune takes one");
  hstujit_text_free(&text);
  hstujit_op* op = nullptr;
  EXPECT_EQ(hstujit_op_from_config(context_, recording, instance["name"].get<std::string>().c_str(), HSTUJIT_FORWARD,
                                   HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_INVALID_ARGUMENT);
  hstujit_config_destroy(recording);
  EXPECT_EQ(hstujit_config_load_recording("/nowhere/misses", &recording), HSTUJIT_NOT_FOUND);
}

TEST_F(CapiTest, EnumerationsOutOfRangeAreRefused) {
  hstujit_op* op = nullptr;
  EXPECT_EQ(hstujit_op_create(context_, kOp, static_cast<hstujit_direction>(7), HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("direction is 7"));
  EXPECT_EQ(hstujit_op_create(context_, kOp, HSTUJIT_FORWARD, static_cast<hstujit_backend>(7), &op),
            HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("backend is 7"));
  hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
  options.deterministic = 2;
  hstujit_context* context = nullptr;
  EXPECT_EQ(hstujit_context_create(&options, &context), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_STREQ(hstujit_last_error(), "deterministic is 2; it must be 0 or 1");
}

// Below 0, no enumeration has a value: reading one as such would be undefined.
TEST_F(CapiTest, EnumerationsBelowZeroAreRefused) {
  constexpr int kBelow = -1;
  const auto set = [&](auto& enumeration) { std::memcpy(&enumeration, &kBelow, sizeof(kBelow)); };
  hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
  set(options.on_miss);
  hstujit_context* context = nullptr;
  EXPECT_EQ(hstujit_context_create(&options, &context), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_STREQ(hstujit_last_error(), "on_miss is -1; it must be a hstujit_miss_policy, 0 to 3");
  // As C calls them, where every int is a value of the type.
  hstujit_op* op = nullptr;
  const auto create = reinterpret_cast<hstujit_status (*)(hstujit_context*, const char*, int, int, hstujit_op**)>(
      reinterpret_cast<void*>(&hstujit_op_create));
  EXPECT_EQ(create(context_, kOp, kBelow, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("direction is -1"));
  EXPECT_EQ(create(context_, kOp, HSTUJIT_FORWARD, kBelow, &op), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("backend is -1"));
  hstujit_config* config = nullptr;
  ASSERT_EQ(hstujit_config_parse(kConfig, "c.json", &config), HSTUJIT_OK) << hstujit_last_error();
  hstujit_run_options run = HSTUJIT_INIT(hstujit_run_options);
  set(run.backend);
  hstujit_text report = {};
  EXPECT_EQ(hstujit_bench(context_, config, &run, &report), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("backend is -1"));
  hstujit_config_destroy(config);
}

TEST_F(CapiTest, WithoutACacheDirectoryThereIsNoPath) {
  const std::string names[] = {"HSTUJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  std::map<std::string, std::optional<std::string>> before;
  for (const std::string& name : names) {
    const char* const value = std::getenv(name.c_str());
    before[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
    ::unsetenv(name.c_str());
  }
  // An empty directory is none that was named, as the variable's.
  for (const char* const none : {static_cast<const char*>(nullptr), ""}) {
    hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
    options.cache_dir = none;
    hstujit_context* context = nullptr;
    ASSERT_EQ(hstujit_context_create(&options, &context), HSTUJIT_OK) << hstujit_last_error();
    hstujit_text text = {};
    EXPECT_EQ(hstujit_cache_path(context, &text), HSTUJIT_NOT_FOUND);
    EXPECT_STREQ(
        hstujit_last_error(),
        "there is no cache directory: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset; cache_dir names one");
    hstujit_context_destroy(context);
    ::setenv("HSTUJIT_CACHE_DIR", cache_.c_str(), 1);
    ASSERT_EQ(hstujit_context_create(&options, &context), HSTUJIT_OK) << hstujit_last_error();
    ASSERT_EQ(hstujit_cache_path(context, &text), HSTUJIT_OK) << hstujit_last_error();
    EXPECT_EQ(std::string(text.data), cache_);
    hstujit_text_free(&text);
    hstujit_context_destroy(context);
    ::unsetenv("HSTUJIT_CACHE_DIR");
  }
  for (const auto& [name, value] : before)
    if (value) ::setenv(name.c_str(), value->c_str(), 1);
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
    EXPECT_EQ(argument.value("max", int64_t{0}), name == "max_seq_len" ? int64_t{1} << 28 : 0) << name;
    EXPECT_EQ(argument.contains("min"), name == "max_seq_len") << name;
    EXPECT_EQ(argument.value("min", int64_t{0}), 0) << name;
  }
  hstujit_value values[8] = {};
  EXPECT_EQ(hstujit_launch(op, values, 8, nullptr, 0, nullptr), HSTUJIT_NOT_PREPARED);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("hstujit_prepare"));
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

  constexpr char kDelta[] = R"({"op": "delta_hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64})";
  EXPECT_EQ(hstujit_op_create(context_, kDelta, HSTUJIT_BACKWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_UNSUPPORTED);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("is \"backward\", but delta_hstu_attention has no backward kernel"));
}

TEST_F(CapiTest, TheLibraryDescribesItself) {
  hstujit_text text = {};
  ASSERT_EQ(hstujit_operators(&text), HSTUJIT_OK);
  const json operators = parse(&text);
  ASSERT_FALSE(operators.empty());
  EXPECT_FALSE(operators[0]["arguments"]["forward"].empty());
  std::map<std::string, std::set<std::string>> names;  // of arguments, by operator
  const auto take = [&](const json& op, const json& signatures) {
    for (const auto& signature : signatures) {
      for (const auto& argument : signature) names[op["op"]].insert(argument["name"]);
    }
  };
  for (const json& op : operators) {
    take(op, op["arguments"]);
    for (const json& variant : op["variants"]) take(op, variant["arguments"]);
  }
  const std::map<std::string, std::set<std::string>> conditional = {
      {"hstu_attention", {"num_targets", "rab", "attn_scale", "drab", "dattn_scale"}},
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
  for (const json& op : operators) {
    if (op["op"] != "split_2d_jagged") continue;
    for (const json& variant : op["variants"]) {
      EXPECT_EQ(variant["arguments"].contains("backward"), variant["parameter"] != "left_only") << variant["parameter"];
    }
  }
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

TEST_F(CapiTest, ExplainNeedsNoGpuWhenTheDeviceIsGiven) {
  const auto config = hstujit::api::Config::parse(kConfig);
  hstujit_text text = {};
  ASSERT_EQ(hstujit_explain(context_, config.get(), nullptr, &text), HSTUJIT_OK) << hstujit_last_error();
  const json report = parse(&text);
  EXPECT_EQ(report["instances"][0]["bucket"], 256);
  EXPECT_EQ(report["instances"][1]["bucket"], 256);
  EXPECT_EQ(report["instances"][1]["short_sequences"], true);
  EXPECT_EQ(report["instances"][2]["bucket"], 512);
  EXPECT_FALSE(report["instances"][0]["cache"]["hit"]);
  EXPECT_EQ(report["instances"][0]["key"].get<std::string>().size(), 64u);
}

TEST_F(CapiTest, CheckSaysTheKernelOfEachKey) {
  const auto config = hstujit::api::Config::parse(kConfig);
  hstujit_text text = {};
  ASSERT_EQ(hstujit_check(context_, config.get(), nullptr, &text), HSTUJIT_OK) << hstujit_last_error();
  const json report = parse(&text);
  EXPECT_EQ(report["keys"], 4) << "of short sequences and of others";
  const json keys = report["instances"][0]["keys"];
  EXPECT_EQ(keys[0]["bucket"], 256);
  EXPECT_EQ(keys[2]["max_seq_len"], json({300}));
  EXPECT_FALSE(keys[2]["config"].empty());
}

TEST_F(CapiTest, EveryMistakeOfAConfigIsALineOfTheError) {
  constexpr char kWrong[] = "{\"version\": 1,\n \"device\": \"sm_1\",\n \"ops\": [{\"op\": 1}]}";
  hstujit_config* config = nullptr;
  EXPECT_EQ(hstujit_config_parse(kWrong, "model.json", &config), HSTUJIT_INVALID_CONFIG);
  std::istringstream lines(hstujit_last_error());
  std::vector<std::string> places;
  for (std::string line; std::getline(lines, line);) places.push_back(line.substr(0, line.find(" is ")));
  EXPECT_EQ(places, (std::vector<std::string>{"model.json:2:12: device \"sm_1\"", "model.json:3:10: ops[0].name",
                                              "model.json:3:17: ops[0].op"}));
  hstujit_op* op = nullptr;
  EXPECT_EQ(hstujit_op_create(context_, R"({"op": "hstu_attention", "attn_dim": 64, "hidden_dim": 4, "head": 1})",
                              HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_INVALID_CONFIG);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("did you mean \"heads\"?"));
  EXPECT_THAT(hstujit_last_error(), HasSubstr("\nhstu_attention.hidden_dim is 4; allowed"));
}

TEST_F(CapiTest, BadRunOptionsAreNamed) {
  const auto config = hstujit::api::Config::parse(kConfig);
  hstujit_run_options options = HSTUJIT_INIT(hstujit_run_options);
  options.jobs = -1;
  hstujit_text text = {};
  EXPECT_EQ(hstujit_prewarm(context_, config.get(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("jobs is -1; it must be"));
  options.jobs = 0;
  options.check = 7;
  EXPECT_EQ(hstujit_prewarm(context_, config.get(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("check is 7; it must be 0 or 1"));
  options.check = 0;
  for (const int count : {-1, HSTUJIT_MAX_SHARDS + 1}) {
    options.shard_count = count;
    EXPECT_EQ(hstujit_prewarm(context_, config.get(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
    EXPECT_THAT(hstujit_last_error(), HasSubstr("HSTUJIT_MAX_SHARDS (1048576) at most"));
  }
  options.shard_count = 0;
  const auto refused = [&](const char* sentence) {
    EXPECT_EQ(hstujit_prewarm(context_, config.get(), &options, &text), HSTUJIT_INVALID_ARGUMENT) << sentence;
    EXPECT_THAT(hstujit_last_error(), HasSubstr(sentence));
  };
  for (const int64_t rows : {int64_t{-1}, (int64_t{1} << 28) + 1, std::numeric_limits<int64_t>::max()}) {
    options.max_rows = rows;
    refused("it must be from 0 (all) to 268435456");
  }
  options.max_rows = 0;
  for (const int repeats : {-1, 1000001}) {
    options.repeats = repeats;
    refused("it must be from 0 (bench: 50, run: 1) to 1000000");
  }
  options.repeats = 0;
  for (const double seconds : {-1.0, 1e18, std::numeric_limits<double>::infinity(), std::nan("")}) {
    options.budget_s = seconds;
    refused("it must be from 0 (the config's) to 2147483647 seconds");
  }
  options.budget_s = 1e300;
  refused("budget_s is 1e+300; it must be");
  options.budget_s = 0;
  options.op_name = "other";
  EXPECT_EQ(hstujit_prewarm(context_, config.get(), &options, &text), HSTUJIT_NOT_FOUND);
  hstujit_text_free(&text);
}

TEST_F(CapiTest, DoctorAndCacheReportsNeverNeedAnything) {
  hstujit_text text = {};
  ASSERT_EQ(hstujit_doctor(context_, &text), HSTUJIT_OK) << hstujit_last_error();
  const json report = parse(&text);
  EXPECT_TRUE(report["driver"].contains("ok"));
  EXPECT_EQ(report["cache"][0]["path"], cache_);
  ASSERT_EQ(hstujit_cache_list(context_, &text), HSTUJIT_OK);
  EXPECT_EQ(parse(&text)["kernels"].size(), 0u);
  ASSERT_EQ(hstujit_cache_verify(context_, &text), HSTUJIT_OK);
  EXPECT_EQ(parse(&text)["bad"].size(), 0u);
  ASSERT_EQ(hstujit_cache_prune(context_, 0, &text), HSTUJIT_OK);
  EXPECT_EQ(parse(&text)["kept"], 0);
  ASSERT_EQ(hstujit_cache_prune_nvrtc(context_, "12.8", &text), HSTUJIT_OK);
  EXPECT_EQ(parse(&text)["removed"], 0);
  for (const std::string wrong : {"", "13", "13.", ".0", "13.0.1", "-13.0", "x"}) {
    EXPECT_EQ(hstujit_cache_prune_nvrtc(context_, wrong.c_str(), &text), HSTUJIT_INVALID_ARGUMENT) << wrong;
    EXPECT_THAT(hstujit_last_error(), HasSubstr("version is \"" + wrong + "\"; allowed: a version of NVRTC"));
  }
  ASSERT_EQ(hstujit_cache_path(context_, &text), HSTUJIT_OK);
  EXPECT_EQ(std::string(text.data), cache_);
  hstujit_text_free(&text);
}

TEST_F(CapiTest, AnOpIsAnObject) {
  for (const char* text : {"[]", "null", "5"}) {
    hstujit_op* op = nullptr;
    EXPECT_EQ(hstujit_op_create(context_, text, HSTUJIT_FORWARD, HSTUJIT_BACKEND_HOST, &op), HSTUJIT_INVALID_CONFIG);
    EXPECT_EQ(hstujit_last_error(), std::string("op is ") + text + "; allowed: a JSON object with \"op\"");
  }
}

TEST_F(CapiTest, ABundleGoesOutAndIn) {
  const std::string path = cache_ + "/bundle.tar";
  hstujit_text text = {};
  hstujit_cache_export_options options = HSTUJIT_INIT(hstujit_cache_export_options);
  options.op = "hstu_attention";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_NOT_FOUND);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("no choice of hstu_attention; nothing is exported"));
  EXPECT_FALSE(std::filesystem::exists(path));
  options.op = "norm_attention";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_NOT_FOUND);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("no choice of norm_attention or of its steps, hstu_attention, "
                                              "layer_norm, rms_norm; nothing is exported"));
  options.op = "hstu_attention";
  use_fake_compiler();
  hstujit_config* config = nullptr;
  ASSERT_EQ(hstujit_config_parse(kConfig, "model.json", &config), HSTUJIT_OK) << hstujit_last_error();
  const hstujit_run_options run = HSTUJIT_INIT(hstujit_run_options);
  ASSERT_EQ(hstujit_prewarm(context_, config, &run, &text), HSTUJIT_OK) << hstujit_last_error();
  hstujit_text_free(&text);
  hstujit_config_destroy(config);
  ASSERT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_OK) << hstujit_last_error();
  const json exported = parse(&text);
  EXPECT_GE(exported["choices"], 1);
  EXPECT_EQ(exported["bytes"], std::filesystem::file_size(path));
  options.op = "norm_attention";  // of whose steps one is
  ASSERT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(parse(&text)["kernels"], exported["kernels"]);
  options.op = "silu";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_NOT_FOUND);
  ASSERT_EQ(hstujit_cache_import(context_, path.c_str(), &text), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(parse(&text)["new_kernels"], 0);
  std::filesystem::resize_file(path, 1000);
  EXPECT_EQ(hstujit_cache_import(context_, path.c_str(), &text), HSTUJIT_IO);
  EXPECT_THAT(hstujit_last_error(), HasSubstr(path + " is no whole bundle"));
  EXPECT_EQ(hstujit_cache_import(context_, (cache_ + "/absent").c_str(), &text), HSTUJIT_NOT_FOUND);
  EXPECT_EQ(hstujit_cache_export(context_, nullptr, nullptr, &text), HSTUJIT_INVALID_ARGUMENT);
  options.op = "hstu_attentoin";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("op is \"hstu_attentoin\", did you mean \"hstu_attention\"?"));
  options.op = "";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("op is \"\"; allowed: "));
  options.size = 8;
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("hstujit_cache_export_options.size is 8"));
}

TEST_F(CapiTest, TheCppLayerThrowsTheSentence) {
  hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
  options.cache_dir = cache_.c_str();
  const hstujit::api::Context context(options);
  try {
    hstujit::api::Op(context, R"({"op": "nothing"})");
    FAIL();
  } catch (const hstujit::api::Error& error) {
    EXPECT_EQ(error.status(), HSTUJIT_INVALID_CONFIG);
    EXPECT_THAT(error.what(), HasSubstr("nothing"));
  }
}

}  // namespace
