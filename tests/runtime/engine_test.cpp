// The engine: layers, policies, single flight, damaged entries, missing libraries and devices.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <latch>

#include "compiler/generator/generator_digest.h"
#include "compiler/host/host_api.h"
#include "compiler/support/text.h"
#include "runtime/dispatch/kernel_choice.h"
#include "tests/paths.h"
#include "tests/runtime/support.h"
#include "tests/support/whole_file.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

class EngineTest : public RuntimeTest {
 protected:
  Status prepare(const EnginePtr& engine) { return make_op(engine)->prepare(256, 0); }

  // Each of `count` threads prepares an op of its own, all at the same moment; how many succeeded.
  int prepare_at_once(const EnginePtr& engine, int count) {
    std::latch start(count);
    std::atomic<int> good{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        const auto op = make_op(engine);
        start.arrive_and_wait();
        good += op->prepare(256, 0).ok() ? 1 : 0;
      });
    }
    threads.clear();
    return good;
  }
};

TEST_F(EngineTest, MemoryThenDirectoryThenCompiler) {
  auto engine = make_engine();
  ASSERT_TRUE(prepare(engine).ok());
  EXPECT_EQ(compiler_->compiles, 1);
  ASSERT_TRUE(prepare(engine).ok());
  EXPECT_EQ(compiler_->compiles, 1) << "the second op finds it in memory";
  EXPECT_EQ(fake().module_loads, 1) << "one module per context";
  ASSERT_TRUE(prepare(make_engine()).ok());
  EXPECT_EQ(compiler_->compiles, 1) << "another process finds it in the cache directory";
}

TEST_F(EngineTest, ThirtyTwoThreadsWithOneColdKeyCompileOnce) {
  compiler_->delay = std::chrono::milliseconds(100);
  const auto engine = make_engine();
  EXPECT_EQ(prepare_at_once(engine, 32), 32);
  EXPECT_EQ(compiler_->compiles, 1);
}

// A caller's log is called when nothing is held that a call of its own would wait for: neither the key, whose other
// callers wait for its first one, nor the only slot of compiles.
TEST_F(EngineTest, ALogMayCallTheLibrary) {
  values_["HSTUJIT_COMPILE_JOBS"] = "1";
  EngineOptions options = engine_options();
  EnginePtr engine;
  std::vector<std::string> called, lines;
  const std::vector<std::string> changes = {"", R"(, "num_targets": true)"};  // the same key, and another one
  options.log = [&](LogCategory category, const std::string& line) {
    lines.push_back(line);
    if (category != LogCategory::kCompile || !called.empty()) return;
    called.push_back(line);
    for (const std::string& change : changes)
      EXPECT_TRUE(make_op(engine, Backend::kCuda, change)->prepare(256, 0).ok()) << change;
  };
  engine = *Engine::create(std::move(options));
  EXPECT_TRUE(prepare(engine).ok());
  ASSERT_EQ(called.size(), 1U);
  EXPECT_THAT(called[0], HasSubstr("hstujit,compile,compiled,kernel="));
  EXPECT_EQ(compiler_->compiles, 2);
  // In the order that they happened in.
  const auto at = [&](const std::string& event) {
    return std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.starts_with(event); }) -
           lines.begin();
  };
  EXPECT_LT(at("hstujit,cache,miss"), at("hstujit,compile,compiled"));
  EXPECT_LT(at("hstujit,compile,compiled"), at("hstujit,cache,stored"));
}

TEST_F(EngineTest, CompilesOfManyColdKeysAreBounded) {
  compiler_->delay = std::chrono::milliseconds(20);
  values_["HSTUJIT_COMPILE_JOBS"] = "3";
  const auto engine = make_engine();
  const OpSpecPtr spec = make_instance().spec;
  const DeviceSpec device = *known_device("sm_90a");
  const auto space = search_space(*spec, Direction::kForward, device, heuristic_size(1024)).candidates;
  constexpr int kThreads = 32;
  ASSERT_GE(space.size(), size_t{kThreads});
  std::latch start(kThreads);
  std::atomic<int> good{0};
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      good += engine->kernels().get({spec, Direction::kForward, space[i].config, device}, true).ok() ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(good, kThreads);
  EXPECT_EQ(compiler_->compiles, kThreads);
  EXPECT_EQ(compiler_->max_at_once, 3);
}

TEST_F(EngineTest, TheBoundOfCompilesIsANumberOfThreads) {
  EXPECT_GE(make_engine()->kernels().compile_jobs(), 1);
  EXPECT_LE(make_engine()->kernels().compile_jobs(), 8);
  EngineOptions options;
  values_["HSTUJIT_COMPILE_JOBS"] = "1025";
  options.environment = Environment::of_values(values_);
  const Status status = Engine::create(std::move(options)).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "HSTUJIT_COMPILE_JOBS is \"1025\"; allowed: a whole number from 0 to 1024");
}

TEST_F(EngineTest, OneOpIsPreparedAndLaunchedByManyThreads) {
  const auto engine = make_engine();
  const auto op = make_op(engine);
  std::vector<std::jthread> threads;
  std::atomic<int> failures{0};
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      const CurrentContext context(*engine);
      Lengths lengths;
      lengths.rows = {5, 9};
      lengths.max_seq_len = int64_t{64} << (i % 4);
      const FakeLaunch launch(make_instance(), lengths);
      for (int round = 0; round < 50; ++round) {
        failures += op->prepare(lengths.max_seq_len, -1).ok() ? 0 : 1;
        failures += op->launch(launch.values.data(), launch.values.size(), nullptr).ok() ? 0 : 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fake().launches, 16 * 50);
}

TEST_F(EngineTest, AFailedCompileReachesEveryWaiterAndIsTriedAgain) {
  compiler_->failure = Status(Code::kCompileFailed, "the source is bad");
  const auto engine = make_engine();
  EXPECT_EQ(prepare(engine).code(), Code::kCompileFailed);
  const int tried = compiler_->compiles;  // the first few estimates
  EXPECT_GT(tried, 1);
  EXPECT_THAT(prepare(engine).message(), HasSubstr("the source is bad"));
  EXPECT_EQ(compiler_->compiles, 2 * tried);
  compiler_->failure = {};
  EXPECT_TRUE(prepare(engine).ok());
}

TEST_F(EngineTest, PolicyFailCompilesNothing) {
  values_["HSTUJIT_ON_MISS"] = "fail";
  const Status miss = prepare(make_engine());
  EXPECT_EQ(miss.code(), Code::kCacheMiss);
  EXPECT_THAT(miss.message(), HasSubstr("the kernel hstu_attention_forward_"));
  EXPECT_THAT(miss.message(), HasSubstr("prewarm"));
  EXPECT_EQ(compiler_->compiles, 0);
  values_.erase("HSTUJIT_ON_MISS");
  ASSERT_TRUE(prepare(make_engine()).ok());
  values_["HSTUJIT_ON_MISS"] = "fail";
  EXPECT_TRUE(prepare(make_engine()).ok()) << "a hit is no miss";
}

TEST_F(EngineTest, PolicyTuneTimesAgainWhenTheWinnerIsRefused) {
  values_["HSTUJIT_ON_MISS"] = "tune";
  const auto engine = make_engine();
  TuningRecord record;
  record.key = tuning_key(*make_instance().spec, Direction::kForward, *engine->device(0), 256);
  record.workload = "a model's lengths";
  record.timed = {{R"({"skeleton":"hstu_attention/sm70"})", record.workload, "a source", 10, 0.1}};
  record.winner = record.timed.front().config;
  ASSERT_TRUE(engine->tuning().add(record).ok());
  // The fake GPU writes no output, so that the first check ends the tuning.
  const Status status = prepare(engine);
  EXPECT_EQ(status.code(), Code::kCheckFailed) << status.message();
  EXPECT_GT(fake().launches, 0) << "it was tuned";
}

TEST_F(EngineTest, AMissThatCannotBeTunedGetsTheHeuristicsKernelAndOneWarning) {
  values_["HSTUJIT_ON_MISS"] = "tune";
  fake().failing = "cuMemAlloc_v2";
  fake().error = cuda::kErrorOutOfMemory;
  const Status status = prepare(make_engine());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(compiler_->compiles, 1);
  const auto warnings = std::count_if(log_.begin(), log_.end(), [](const std::string& line) {
    return line.find("miss-not-tuned") != std::string::npos &&
           line.find("of device memory are needed") != std::string::npos;
  });
  EXPECT_EQ(warnings, 1);
}

TEST_F(EngineTest, ADamagedCubinIsRebuilt) {
  ASSERT_TRUE(prepare(make_engine()).ok());
  int damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_dir())) {
    if (entry.path().extension() != ".cubin") continue;
    ASSERT_TRUE(write_file_atomically(entry.path(), "other bytes").ok());
    ++damaged;
  }
  ASSERT_EQ(damaged, 1);
  EXPECT_TRUE(prepare(make_engine()).ok());
  EXPECT_EQ(compiler_->compiles, 2);
  EXPECT_TRUE(prepare(make_engine()).ok());
  EXPECT_EQ(compiler_->compiles, 2) << "the rebuilt entry is good";
}

TEST_F(EngineTest, ACompilerThatGivesNoElfImageFails) {
  compiler_->cubin = "";
  EXPECT_THAT(prepare(make_engine()).message(), HasSubstr("gave 0 bytes"));
  compiler_->cubin = std::string(100, 'x');
  const Status status = prepare(make_engine());
  EXPECT_EQ(status.code(), Code::kCompileFailed);
  EXPECT_THAT(status.message(), HasSubstr("which are no cubin"));
  EXPECT_EQ(fake().module_loads, 0);
}

TEST_F(EngineTest, ACacheThatCannotBeWrittenIsNoError) {
  ASSERT_TRUE(write_file_atomically(folder_->path() / "file", "").ok());
  values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / "file" / "below").string();
  EXPECT_TRUE(prepare(make_engine()).ok());
}

TEST_F(EngineTest, AReadOnlyLayerIsFoundAndLeftAlone) {
  ASSERT_TRUE(prepare(make_engine()).ok());
  values_["HSTUJIT_CACHE_PATH"] = cache_dir();
  values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / "other").string();
  EXPECT_TRUE(prepare(make_engine()).ok());
  EXPECT_EQ(compiler_->compiles, 1);
}

TEST_F(EngineTest, AMissingDriverSaysWhatWasLookedFor) {
  values_["HSTUJIT_CUDA_DRIVER"] = "/nowhere/libcuda.so";
  const Status status = prepare(make_engine());
  EXPECT_EQ(status.code(), Code::kNoDriver);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/libcuda.so"));
}

TEST_F(EngineTest, ALibraryThatIsNoDriverIsRefused) {
  values_["HSTUJIT_CUDA_DRIVER"] = "libm.so.6";
  const Status status = prepare(make_engine());
  EXPECT_EQ(status.code(), Code::kNoDriver);
  EXPECT_THAT(status.message(), HasSubstr("lacks the function cuInit"));
}

TEST_F(EngineTest, AMissingCompilerSaysWhatWasLookedFor) {
  compiler_ = nullptr;
  values_["HSTUJIT_COMPILER_LIBRARY"] = "/nowhere/libhstujit_compiler.so";
  const Status status = prepare(make_engine());
  EXPECT_EQ(status.code(), Code::kNoCompiler);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/libhstujit_compiler.so"));
}

TEST_F(EngineTest, ACompilerOfAnotherGeneratorIsRefused) {
  const auto say = [](const std::string& digest) { ::setenv("FAKE_COMPILER_GENERATOR", digest.c_str(), 1); };
  compiler_ = nullptr;
  values_["HSTUJIT_COMPILER_LIBRARY"] = binary_path("/test_libraries/libhstujit_fake_compiler.so");
  const std::string other(64, '0');
  say(other);
  const Status refused = prepare(make_engine());
  EXPECT_EQ(refused.code(), Code::kNoCompiler);
  EXPECT_THAT(refused.message(), HasSubstr("has the generator " + other));
  EXPECT_THAT(refused.message(), HasSubstr("by the generator " + std::string(generator_digest())));
  say(std::string(generator_digest()));
  EXPECT_THAT(prepare(make_engine()).message(), HasSubstr("the fake compiler compiles nothing"));
  ::unsetenv("FAKE_COMPILER_GENERATOR");
}

TEST_F(EngineTest, AHostBackendOfAnotherBuildIsRefused) {
  values_["HSTUJIT_HOST_LIBRARY"] = binary_path("/test_libraries/libhstujit_fake_host.so");
  const auto refused = [&](const char* variable, const std::string& value) {
    ::setenv(variable, value.c_str(), 1);
    const Status status = make_op(make_engine(), Backend::kHost)->prepare(256, -1);
    ::unsetenv(variable);
    EXPECT_EQ(status.code(), Code::kNoCompiler);
    EXPECT_THAT(status.message(), HasSubstr(binary_path("/test_libraries/libhstujit_fake_host.so")));
    return status.message();
  };
  EXPECT_THAT(refused("FAKE_HOST_ABI", "1"),
              HasSubstr(fmt::format("has ABI 1; this libhstujit needs ABI {}", HSTUJIT_HOST_ABI)));
  EXPECT_THAT(refused("FAKE_HOST_GENERATOR", "another"),
              HasSubstr("has the generator another; this libhstujit goes by the generator "));
  EXPECT_THAT(refused("FAKE_HOST_GENERATOR", ""), HasSubstr("is of an older build"));
  ::setenv("FAKE_HOST_GENERATOR", std::string(generator_digest()).c_str(), 1);
  const Status taken = make_op(make_engine(), Backend::kHost)->prepare(256, -1);
  ::unsetenv("FAKE_HOST_GENERATOR");
  EXPECT_EQ(taken.message(), "the fake host backend makes nothing");
}

TEST_F(EngineTest, AMissingHostBackendSaysWhatWasLookedFor) {
  values_["HSTUJIT_HOST_LIBRARY"] = "/nowhere/libhstujit_host.so";
  const Status status = make_op(make_engine(), Backend::kHost)->prepare(256, -1);
  EXPECT_EQ(status.code(), Code::kNoCompiler);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/libhstujit_host.so"));
}

TEST_F(EngineTest, EveryDriverFailureOfPrepareIsAStatus) {
  for (const char* function :
       {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
        "cuCtxGetCurrent", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuModuleLoadData", "cuModuleGetFunction",
        "cuFuncSetAttribute"}) {
    fake().failing = function;
    const Status status = prepare(make_engine());
    EXPECT_FALSE(status.ok()) << function;
    EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_FAKE")) << function;
    fake().failing = nullptr;
  }
}

TEST_F(EngineTest, NoGpuAndWrongOrdinalAreNoDevice) {
  EXPECT_EQ(make_op(make_engine())->prepare(256, 3).code(), Code::kNoDevice);
  fake().devices = 0;
  EXPECT_EQ(prepare(make_engine()).code(), Code::kNoDevice);
}

TEST_F(EngineTest, AForeignCubinInTheCacheIsRebuilt) {
  ASSERT_TRUE(prepare(make_engine()).ok());
  fake().failing = "cuModuleLoadData";
  fake().error = cuda::kErrorNoBinaryForGpu;
  const Status status = prepare(make_engine());
  EXPECT_EQ(status.code(), Code::kCompileFailed);
  EXPECT_EQ(compiler_->compiles, 2) << "tried once more with bytes of its own";
}

TEST_F(EngineTest, AnEntryThatTheDriverRefusesIsReplacedForEveryProcess) {
  ASSERT_TRUE(prepare(make_engine()).ok());
  fake().refused_image =
      "\x7f\x45\x4c\x46"
      "a cubin";
  compiler_->cubin = cubin_of("a better cubin");
  const Status status = prepare(make_engine());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(compiler_->compiles, 2);
  EXPECT_TRUE(prepare(make_engine()).ok());
  EXPECT_EQ(compiler_->compiles, 2) << "the next process finds the new one";
}

TEST_F(EngineTest, ARefusedEntryOfAReadOnlyLayerIsOverlaid) {
  ASSERT_TRUE(prepare(make_engine()).ok());
  values_["HSTUJIT_CACHE_PATH"] = cache_dir();
  values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / "other").string();
  fake().refused_image =
      "\x7f\x45\x4c\x46"
      "a cubin";
  compiler_->cubin = cubin_of("a better cubin");
  EXPECT_TRUE(prepare(make_engine()).ok());
  EXPECT_TRUE(prepare(make_engine()).ok());
  EXPECT_EQ(compiler_->compiles, 2);
}

TEST_F(EngineTest, ThreadsWithOneRefusedEntryReplaceItOnce) {
  ASSERT_TRUE(prepare(make_engine()).ok());
  fake().refused_image =
      "\x7f\x45\x4c\x46"
      "a cubin";
  compiler_->cubin = cubin_of("a better cubin");
  compiler_->delay = std::chrono::milliseconds(100);
  const auto engine = make_engine();
  EXPECT_EQ(prepare_at_once(engine, 16), 16);
  EXPECT_EQ(compiler_->compiles, 2);
}

TEST_F(EngineTest, WhatIsDumpedLiesBesideTheEntry) {
  const auto text_beside = [&](const std::string& extension) -> std::string {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_dir())) {
      if (entry.path().extension() != ".cubin") continue;
      const auto text = whole_file(std::filesystem::path(entry.path()).replace_extension(extension));
      return text.ok() ? *text : std::string();
    }
    return "no entry";
  };
  values_["HSTUJIT_DUMP"] = "ir,log";
  ASSERT_TRUE(prepare(make_engine()).ok());
  EXPECT_EQ(text_beside(".mlir"), "module {}");
  EXPECT_EQ(text_beside(".log"), "the log");
  EXPECT_EQ(text_beside(".cu"), "") << "not asked for";
  std::filesystem::remove_all(cache_dir());
  values_["HSTUJIT_DUMP"] = "all";
  ASSERT_TRUE(prepare(make_engine()).ok());
  EXPECT_EQ(text_beside(".cu"), "// the source");
}

// Another process bounds the directory while this one runs: what it has loaded is in its memory.
TEST_F(EngineTest, AProcessGoesOnWhenItsEntryIsEvicted) {
  const auto engine = make_engine();
  const auto op = make_op(engine);
  ASSERT_TRUE(op->prepare(256, 0).ok());
  ArtifactStore other(CacheDirectories{.user = cache_dir(), .read_only = {}}, Log());
  ASSERT_EQ(other.prune({.max_bytes = 0, .nvrtc = {}}).removed, 1);
  EXPECT_TRUE(op->prepare(256, 0).ok());
  EXPECT_TRUE(prepare(engine).ok()) << "an op that is made afterwards";
  EXPECT_EQ(compiler_->compiles, 1);
  EXPECT_EQ(fake().module_loads, 1);
  ASSERT_TRUE(prepare(make_engine()).ok());
  EXPECT_EQ(compiler_->compiles, 2) << "another process makes it anew";
}

TEST_F(EngineTest, DevicesAreDescribedAsTheirCapabilitySays) {
  const auto engine = make_engine();
  const auto hopper = engine->device(0);
  ASSERT_TRUE(hopper.ok());
  EXPECT_EQ(hopper->arch, "sm_90a");
  EXPECT_EQ(hopper->sm_count, 132);
  EXPECT_EQ(hopper->shared_memory, 232448);
  fake().major = 8;
  EXPECT_EQ(make_engine()->device(0)->arch, "sm_80");
}

TEST_F(EngineTest, ABadEnvironmentIsRefusedWhenTheContextIsMade) {
  values_["HSTUJIT_ON_MISS"] = "sometimes";
  EngineOptions options;
  options.environment = Environment::of_values(values_);
  const auto engine = Engine::create(std::move(options));
  EXPECT_EQ(engine.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(engine.status().message(), HasSubstr("sometimes"));
}

TEST_F(EngineTest, AllVariablesThatAreWrongAreNamedAtOnce) {
  values_["HSTUJIT_LENGTH_MODE"] = "pow3";
  values_["HSTUJIT_REMOTE_CACHE"] = "ftp://host";
  values_["HSTUJIT_FROZEN"] = "/nonexistent/choices.json";
  values_["HSTUJIT_OVERRIDE"] = R"({"stages": 17, "blockm": 7})";
  EngineOptions options;
  options.environment = Environment::of_values(values_);
  const Status status = Engine::create(std::move(options)).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(split(status.message(), '\n'),
              testing::ElementsAre(testing::StartsWith("HSTUJIT_LENGTH_MODE is \"pow3\""),
                                   testing::StartsWith("HSTUJIT_OVERRIDE.blockm (value 7) is not"),
                                   testing::StartsWith("HSTUJIT_OVERRIDE.stages is 17; allowed"),
                                   testing::StartsWith("HSTUJIT_FROZEN: HSTUJIT_OVERRIDE and HSTUJIT_FROZEN are both"),
                                   testing::StartsWith("HSTUJIT_REMOTE_CACHE does not begin with")));
}

TEST_F(EngineTest, AnOverrideThatNoKernelCanHaveIsRefusedWhenTheContextIsMade) {
  const auto refusal = [&](const std::string& override) {
    values_["HSTUJIT_OVERRIDE"] = override;
    EngineOptions options;
    options.environment = Environment::of_values(values_);
    const Status status = Engine::create(std::move(options)).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << override;
    return status.message();
  };
  for (const char* override : {R"({"blocks_per_sm": 0})", R"({"stages": 0})", R"({"block_n": -16})"})
    EXPECT_THAT(refusal(override), HasSubstr("allowed: an integer from")) << override;
  EXPECT_THAT(refusal(R"({"blockm": 7})"),
              HasSubstr("HSTUJIT_OVERRIDE.blockm (value 7) is not a known field, did you"));
  EXPECT_THAT(refusal(R"({"skeleton": "row/forward", "block_n": 3})"),
              HasSubstr("HSTUJIT_OVERRIDE.block_n (value 3) is not a known field; allowed: "));
  EXPECT_THAT(refusal(R"({"schedule": "sorted"})"), HasSubstr("HSTUJIT_OVERRIDE.schedule is \"sorted\"; allowed: "));
  EXPECT_THAT(refusal(R"({"lanes_arrive": 1})"),
              HasSubstr("HSTUJIT_OVERRIDE.lanes_arrive is 1; allowed: true or false"));
  EXPECT_THAT(refusal(R"({"skeleton": "attention/none"})"), HasSubstr("HSTUJIT_OVERRIDE: "));
  EXPECT_THAT(refusal("[]"), HasSubstr("HSTUJIT_OVERRIDE is []; allowed: a JSON object of config fields"));
  const std::string text(100'000, 'x');
  for (const std::string& override : {text, "{\"" + text + "\": 1}"}) {
    const std::string message = refusal(override);
    EXPECT_THAT(message, ::testing::StartsWith("HSTUJIT_OVERRIDE"));
    EXPECT_LT(message.size(), 3000u);
  }
}

// A value that a field may have for one kernel may be wrong for another.
TEST_F(EngineTest, AnOverrideThatThisKernelCannotHaveIsNamedOnce) {
  for (const char* override : {R"({"threads_per_row": 8})", R"({"skeleton": "row/forward"})", R"({"block_m": 24})"}) {
    values_["HSTUJIT_OVERRIDE"] = override;
    const Status status = prepare(make_engine());
    EXPECT_EQ(status.code(), Code::kUnsupported) << override;
    EXPECT_THAT(status.message(), ::testing::StartsWith("HSTUJIT_OVERRIDE")) << override;
    EXPECT_THAT(status.message(), ::testing::Not(HasSubstr("config."))) << override;
  }
  EXPECT_EQ(compiler_->compiles, 0);
}

TEST_F(EngineTest, AnOverrideWithNamesOfEarlierLibrariesIsRead) {
  values_["HSTUJIT_OVERRIDE"] = R"({"schedule": "grid", "share_columns": true})";
  const auto prepare_bf16 = [&] { return make_op(make_engine(), Backend::kCuda, kBf16)->prepare(256, 0).message(); };
  EXPECT_EQ(prepare_bf16(), "");
  // A value is that of today, which this kernel happens not to have.
  values_["HSTUJIT_OVERRIDE"] = R"({"schedule": "ordered"})";
  EXPECT_THAT(prepare_bf16(), HasSubstr("schedule semaphore; allowed: grid, persistent"));
}

TEST_F(EngineTest, ADumpThatIsNotThereIsRefused) {
  values_["HSTUJIT_DUMP"] = "ptx";
  EngineOptions options;
  options.environment = Environment::of_values(values_);
  const auto engine = Engine::create(std::move(options));
  EXPECT_EQ(engine.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(engine.status().message(), HasSubstr("HSTUJIT_DUMP contains \"ptx\"; allowed: ir, src, log, all"));
}

TEST_F(EngineTest, MaxSeqLenMustBePositive) {
  const Status status = make_op(make_engine())->prepare(0, 0);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("max_seq_len is 0; it must be between 1 and 268435456"));
}

}  // namespace
}  // namespace hstujit::test
