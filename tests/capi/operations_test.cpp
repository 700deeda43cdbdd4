// How an operation ends early: the caller's flag, and exceptions of its progress function.
#include "hstujit/operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/capi/capi_fixture.h"

namespace {

using hstujit::api::Config;
using ::testing::HasSubstr;

constexpr char kThree[] = R"([{"name": "a", "op": "silu", "width": 8, "rows": 3},
                              {"name": "b", "op": "silu", "width": 16, "rows": 3},
                              {"name": "c", "op": "silu", "width": 24, "rows": 3}])";

hstujit_run_options one_job() {
  auto options = HSTUJIT_INIT(hstujit_run_options);
  options.arch = "H200";
  options.jobs = 1;
  return options;
}

class Operations : public CapiTest {
 protected:
  size_t kernels() {
    hstujit_text text = {};
    EXPECT_EQ(hstujit_cache_list(context_, &text), HSTUJIT_OK) << hstujit_last_error();
    return parse(&text)["kernels"].size();
  }
};

TEST_F(Operations, ACancelledPrewarmBeginsNoFurtherCompile) {
  use_fake_compiler();
  const Config config = Config::parse(kThree);
  static volatile int cancel = 0;
  auto options = one_job();
  options.cancel = &cancel;
  options.progress = [](void*, size_t, size_t, const char*) { __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED); };
  hstujit_text report = {};
  EXPECT_EQ(hstujit_prewarm(context_, config.get(), &options, &report), HSTUJIT_CANCELLED);
  EXPECT_STREQ(hstujit_last_error(), "prewarm was cancelled; what it had finished is kept");
  EXPECT_STREQ(hstujit_status_name(HSTUJIT_CANCELLED), "cancelled");
  hstujit_text_free(&report);
  EXPECT_THAT(kernels(), testing::AllOf(testing::Ge(1u), testing::Le(2u))) << "one may be under way";
}

TEST_F(Operations, AnExceptionOfAProgressCallbackIsNoBug) {
  const Config config = Config::parse(kThree);
  auto options = one_job();
  options.check = 1;
  options.progress = [](void*, size_t, size_t, const char*) { throw std::runtime_error("enough"); };
  hstujit_text report = {};
  EXPECT_EQ(hstujit_prewarm(context_, config.get(), &options, &report), HSTUJIT_CANCELLED);
  EXPECT_STREQ(hstujit_last_error(), "the progress callback threw an exception: enough");
  hstujit_text_free(&report);
}

TEST_F(Operations, AnExceptionOfAProgressFunctionReachesTheCaller) {
  struct Enough {
    size_t done;
  };
  auto described = HSTUJIT_INIT(hstujit_context_options);
  described.cache_dir = cache_.c_str();
  described.cache_path = "";
  const hstujit::api::Context context(described);
  const Config config = Config::parse(kThree);
  auto options = one_job();
  options.check = 1;
  int calls = 0;
  const auto stop = [&](size_t done, size_t, const std::string&) {
    ++calls;
    throw Enough{done};
  };
  try {
    hstujit::api::prewarm(context, config, options, stop);
    ADD_FAILURE() << "nothing is thrown";
  } catch (const Enough& enough) {
    EXPECT_EQ(enough.done, 1u);
  }
  EXPECT_EQ(calls, 1);
  try {
    hstujit::api::prewarm(context, config, options);
    ADD_FAILURE() << "nothing is thrown";
  } catch (const hstujit::api::OperationError& error) {
    EXPECT_EQ(error.status(), HSTUJIT_CACHE_MISS);
    EXPECT_EQ(nlohmann::json::parse(error.report())["missing"], 3);
  }
}

TEST_F(Operations, AnExceptionOfALogCallbackIsDropped) {
  auto options = HSTUJIT_INIT(hstujit_context_options);
  options.cache_dir = cache_.c_str();
  options.cache_path = "";
  options.log = [](void*, const char*, const char*) { throw std::runtime_error("no log"); };
  const hstujit::api::Context context(options);
  auto checked = one_job();
  checked.check = 1;
  EXPECT_THROW(hstujit::api::prewarm(context, Config::parse(kThree), checked), hstujit::api::OperationError);
}

}  // namespace
