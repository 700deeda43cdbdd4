// How an operation ends early: the caller's flag, and exceptions of its progress function.
#include "hstujit/operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
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

// The variable is that of the time when the context was made.
TEST_F(Operations, AMissingLibraryIsNamedWithWhatWasLookedFor) {
  const Config config = Config::parse(kThree);
  const auto tuned = [&](const char* library) {
    ::setenv("HSTUJIT_OPERATIONS_LIBRARY", library, 1);
    hstujit_context* const context = make_context();
    ::unsetenv("HSTUJIT_OPERATIONS_LIBRARY");
    hstujit_text report = {};
    EXPECT_EQ(hstujit_tune(context, config.get(), nullptr, &report), HSTUJIT_NO_COMPILER);
    EXPECT_EQ(report.data, nullptr);
    hstujit_context_destroy(context);
    return std::string(hstujit_last_error());
  };
  EXPECT_THAT(tuned("/nowhere/libhstujit_operations.so"),
              testing::AllOf(HasSubstr("the operations library that HSTUJIT_OPERATIONS_LIBRARY names was not found"),
                             HasSubstr("/nowhere/libhstujit_operations.so")));
  const std::string other = hstujit::binary_path("/test_libraries/libhstujit_fake_compiler.so");
  EXPECT_THAT(tuned(other.c_str()), HasSubstr("hstujit_operations_abi"));
}

// Events of a context under the policy "tune" that prepares an op over the fake driver.
std::string events_of_a_miss(const std::string& cache, hstujit_status expected) {
  std::string events;
  auto options = HSTUJIT_INIT(hstujit_context_options);
  options.cache_dir = cache.c_str();
  options.cache_path = "";
  options.on_miss = HSTUJIT_ON_MISS_TUNE;
  options.log = [](void* user, const char* category, const char* line) {
    static std::mutex mutex;  // several threads tell
    const std::lock_guard lock(mutex);
    static_cast<std::string*>(user)->append(category).append(" ").append(line).append("\n");
  };
  options.log_user = &events;
  hstujit_context* context = nullptr;
  EXPECT_EQ(hstujit_context_create(&options, &context), HSTUJIT_OK) << hstujit_last_error();
  hstujit_op* op = nullptr;
  EXPECT_EQ(hstujit_op_create(context, R"({"op": "silu", "width": 8})", HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op),
            HSTUJIT_OK)
      << hstujit_last_error();
  const auto problem = HSTUJIT_INIT(hstujit_problem);
  EXPECT_EQ(hstujit_prepare(op, &problem), expected) << hstujit_last_error();
  hstujit_op_destroy(op);
  hstujit_context_destroy(context);
  return events;
}

TEST_F(Operations, AMissAsksTheLibraryToTune) {
  use_fake_compiler();
  ::setenv("HSTUJIT_CUDA_DRIVER", hstujit::binary_path("/test_libraries/libhstujit_fake_cuda.so").c_str(), 1);
  ::setenv("HSTUJIT_WORKER", "none", 1);
  // The library's own engine times candidates, none of which writes anything over the fake driver.
  EXPECT_THAT(events_of_a_miss(cache_, HSTUJIT_CHECK_FAILED), HasSubstr("tune hstujit,tune,bench,worker="));
  EXPECT_THAT(hstujit_last_error(), testing::StartsWith("no candidate of "));
  ::setenv("HSTUJIT_OPERATIONS_LIBRARY", "/nowhere/libhstujit_operations.so", 1);
  const std::string other_cache = (folder_->path() / "other").string();
  EXPECT_THAT(events_of_a_miss(other_cache, HSTUJIT_OK),
              testing::AllOf(HasSubstr("tune hstujit,tune,miss-not-tuned,op=silu"),
                             HasSubstr("/nowhere/libhstujit_operations.so")));
  for (const char* name : {"HSTUJIT_CUDA_DRIVER", "HSTUJIT_WORKER", "HSTUJIT_OPERATIONS_LIBRARY"}) ::unsetenv(name);
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
