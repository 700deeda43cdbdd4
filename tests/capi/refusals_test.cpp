// Refusals of the C API: by which status, and in which sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <thread>

#include "hstujit/hstujit.hpp"
#include "tests/capi/capi_fixture.h"

namespace {

using nlohmann::json;
using ::testing::HasSubstr;

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
  EXPECT_EQ(hstujit_op_create(context_, R"({"op": "hstu_attention", "attn_dim": 64, "hidden_dim": 260, "head": 1})",
                              HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_INVALID_CONFIG);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("did you mean \"heads\"?"));
  EXPECT_THAT(hstujit_last_error(), HasSubstr("\nhstu_attention.hidden_dim is 260; allowed"));
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

TEST_F(CapiTest, AnOpIsAnObject) {
  for (const char* text : {"[]", "null", "5"}) {
    hstujit_op* op = nullptr;
    EXPECT_EQ(hstujit_op_create(context_, text, HSTUJIT_FORWARD, HSTUJIT_BACKEND_HOST, &op), HSTUJIT_INVALID_CONFIG);
    EXPECT_EQ(hstujit_last_error(), std::string("op is ") + text + "; allowed: a JSON object with \"op\"");
  }
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
