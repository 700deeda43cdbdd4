// Common parts of the tests of the runtime: the fake driver, a fake compiler, engines and ops over them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "compiler/spec/rounding.h"
#include "compiler/support/dynamic_library.h"
#include "compiler/support/files.h"
#include "operations/tuning/data/problem_data.h"
#include "operations/tuning/tuner/tune_key.h"
#include "runtime/dispatch/op.h"
#include "tests/fakes/fake_cuda.h"
#include "tests/paths.h"

namespace hstujit::test {

// The state of the fake driver, through the same library that the runtime opens.
inline FakeCuda& fake() {
  static FakeCuda* const state = [] {
    auto library = DynamicLibrary::open("the fake driver", {binary_path("/test_libraries/libhstujit_fake_cuda.so")},
                                        Code::kNoDriver, DynamicLibrary::Keep::kForever);
    return library.ok() ? (*library->optional_function<FakeCuda*()>("fake_cuda"))() : nullptr;
  }();
  return *state;
}

// Bytes that pass for a cubin: an ELF image, as far as anybody looks, that says `text`.
inline std::string cubin_of(const std::string& text) {
  std::string bytes("\x7f\x45\x4c\x46");
  bytes.append(text).append(64, '\0');
  return bytes;
}

// Gives every kernel the same "cubin" after a while, and counts.
class FakeCompiler final : public KernelCompiler {
 public:
  Result<Blobs> compile(const CompileRequest& request) const override {
    ++compiles;
    const int now = ++at_once;
    for (int max = max_at_once; max < now && !max_at_once.compare_exchange_weak(max, now);) {
    }
    std::this_thread::sleep_for(delay);
    --at_once;
    if (!failure.ok()) return failure;
    const std::string config = key_text(request.config);
    if (failing.contains(config)) return Status(Code::kCompileFailed, "the source of " + config + " is bad\nline 2");
    const auto special = resources_of.find(config);
    return Blobs{{"cubin", cubin},
                 {"resources", special == resources_of.end() ? resources : special->second},
                 {"ir", "module {}"},
                 {"source", "// the source"},
                 {"log", "the log"}};
  }
  Result<Blobs> emit(const CompileRequest& request) const override {
    return Blobs{{"source", describe(request.config) + source_suffix}, {"ir", "module {}"}};
  }
  Result<NvrtcLibrary> nvrtc() const override {
    if (!nvrtc_failure.ok()) return nvrtc_failure;
    return NvrtcLibrary{"/a/libnvrtc.so.13", nvrtc_version, nvrtc_archs};
  }
  std::string path() const override { return "fake"; }

  mutable std::atomic<int> compiles{0};
  mutable std::atomic<int> at_once{0};
  mutable std::atomic<int> max_at_once{0};
  std::chrono::milliseconds delay{0};
  Status failure;
  std::string source_suffix;
  std::string nvrtc_version = "13.0";
  std::vector<int> nvrtc_archs;
  Status nvrtc_failure;
  std::string cubin = cubin_of("a cubin");
  std::string resources = R"({"registers": 100, "nvrtc": "13.0"})";
  std::map<std::string, std::string> resources_of;  // of some configs, by key_text
  std::set<std::string> failing;                    // configs that do not compile
};

class RuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake().reset();
    auto folder = TempDir::create();
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<TempDir>(std::move(*folder));
    // No worker: another process would have a fake driver of its own.
    values_ = {{"HSTUJIT_CUDA_DRIVER", binary_path("/test_libraries/libhstujit_fake_cuda.so")},
               {"HSTUJIT_CACHE_DIR", cache_dir()},
               {"HSTUJIT_WORKER", "none"}};
  }

  std::string cache_dir() const { return (folder_->path() / "cache").string(); }

  EngineOptions engine_options() {
    EngineOptions options;
    options.environment = Environment::of_values(values_);
    options.compiler = compiler_;
    options.host = host_;
    options.tuner = miss_tuner_of_this_library();
    options.records = records_;
    options.log = [this](LogCategory, const std::string& line) {
      const std::lock_guard lock(log_mutex_);
      log_.push_back(line);
    };
    return options;
  }

  EnginePtr make_engine() {
    auto engine = Engine::create(engine_options());
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return *engine;
  }

  // In fp32, whose kernels pack no sequences: a bucket has one kernel, unless `extra` says otherwise.
  static constexpr const char* kBf16 = R"(, "dtype": "bf16")";
  static Instance make_instance(const std::string& extra = "") {
    const bool has_dtype = extra.find("dtype") != std::string::npos;
    const auto json = parse_json_text(R"({"name": "test", "op": "hstu_attention", "heads": 2, "attn_dim": 64,
        "hidden_dim": 64, "max_seq_len": [128, 256], "lengths": [5, 0, 130])" +
                                          std::string(has_dtype ? "" : R"(, "dtype": "fp32")") + extra + "}",
                                      "test");
    EXPECT_TRUE(json.ok());
    auto instance = parse_instance(*json, "test", "");
    EXPECT_TRUE(instance.ok()) << instance.status().message();
    return *instance;
  }

  static std::unique_ptr<Op> make_op(const EnginePtr& engine, Backend backend = Backend::kCuda,
                                     const std::string& extra = "") {
    auto op = Op::create(engine, {make_instance(extra), Direction::kForward, backend, LengthMode::kPow2, {}});
    EXPECT_TRUE(op.ok()) << op.status().message();
    return std::move(*op);
  }

  std::unique_ptr<TempDir> folder_;
  std::map<std::string, std::string> values_;
  std::shared_ptr<FakeCompiler> compiler_ = std::make_shared<FakeCompiler>();
  HostBackendPtr host_;
  std::string records_;  // of shipped tuning records; "": none
  std::mutex log_mutex_;
  std::vector<std::string> log_;
};

// The values of a launch over host memory that stands for device memory.
struct FakeLaunch {
  explicit FakeLaunch(const Instance& instance, const Lengths& lengths, DLDeviceType type = kDLCUDA,
                      Direction direction = Direction::kForward) {
    auto made = make_problem_data(instance.spec, direction, lengths, 1, 0);
    EXPECT_TRUE(made.ok());
    problem = std::move(*made);
    std::vector<void*> addresses;
    for (auto& image : problem.images) {
      // Aligned as device memory is, also when empty.
      memory.emplace_back(static_cast<char*>(std::aligned_alloc(256, (image.size() / 256 + 1) * 256)), &std::free);
      std::copy(image.begin(), image.end(), reinterpret_cast<std::byte*>(memory.back().get()));
      addresses.push_back(memory.back().get());
    }
    launch = std::make_unique<LaunchValues>(problem, addresses, DLDevice{type, 0});
    values.assign(launch->values(), launch->values() + launch->count());
    for (size_t i = 0; i < values.size(); ++i) {
      tensors.push_back(problem.signature[i].kind == ArgumentKind::kTensor ? *values[i].tensor : DLTensor{});
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (problem.signature[i].kind == ArgumentKind::kTensor) values[i].tensor = &tensors[i];
    }
  }
  int index(std::string_view name) const { return find_argument(problem.signature, name); }
  DLTensor& tensor(std::string_view name) { return tensors[static_cast<size_t>(index(name))]; }
  hstujit_value& value(std::string_view name) { return values[static_cast<size_t>(index(name))]; }

  ProblemData problem;
  std::vector<std::unique_ptr<char, decltype(&std::free)>> memory;
  std::unique_ptr<LaunchValues> launch;
  std::vector<DLTensor> tensors;
  std::vector<hstujit_value> values;
};

// A thread with the fake primary context current, as a CUDA program has it.
class CurrentContext {
 public:
  explicit CurrentContext(Engine& engine) : guard_(ContextGuard::enter(*engine.driver(), 0)) {}

 private:
  Result<ContextGuard> guard_;
};

}  // namespace hstujit::test
