// A program on a real GPU: launched, and captured in a CUDA graph whose replays give the same bits, also when other
// modules are unloaded meanwhile. Skips without a GPU.
#include "tests/tools/program.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "compiler/spec/config.h"
#include "operations/configs/operation.h"

namespace hstujit {
namespace {

// Functions that the library does not need.
struct GraphFunctions {
  int (*begin_capture)(cuda::Stream, int) = nullptr;
  int (*end_capture)(cuda::Stream, void**) = nullptr;
  int (*instantiate)(void**, void*, unsigned long long) = nullptr;
  int (*launch)(void*, cuda::Stream) = nullptr;
  int (*destroy_executable)(void*) = nullptr;
  int (*destroy)(void*) = nullptr;

  bool open() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return false;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find(begin_capture, "cuStreamBeginCapture_v2") && find(end_capture, "cuStreamEndCapture") &&
           find(instantiate, "cuGraphInstantiateWithFlags") && find(launch, "cuGraphLaunch") &&
           find(destroy_executable, "cuGraphExecDestroy") && find(destroy, "cuGraphDestroy");
  }
};

class ProgramOnDevice : public ::testing::TestWithParam<Direction> {
 protected:
  void SetUp() override {
    EngineOptions options;
    options.cache_dir = scratch_.cache();
    options.modules = {.staying = 0, .idle = 1};  // so that each may be unloaded
    const auto engine = Engine::create(std::move(options));
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *engine;
    const auto driver = engine_->driver();
    if (!driver.ok() || !graphs_.open()) GTEST_SKIP() << "no GPU";
    driver_ = *driver;
  }

  static Instance norm(int64_t width) {
    return *parse_instance({{"name", "norm"}, {"op", "layer_norm"}, {"width", width}, {"rows", 16}}, "", "");
  }

  Scratch scratch_;
  EnginePtr engine_;
  CudaDriverPtr driver_;
  GraphFunctions graphs_;
};

TEST_P(ProgramOnDevice, ReplaysOfACapturedLaunchGiveTheBitsOfALaunch) {
  const Direction direction = GetParam();
  const auto instance = parse_instance({{"name", "layer"},
                                        {"op", "norm_attention"},
                                        {"heads", 4},
                                        {"attn_dim", 64},
                                        {"hidden_dim", 128},
                                        {"num_targets", 5},
                                        {"max_seq_len", 300},
                                        {"lengths", {300, 0, 1, 129, 7, 64}},
                                        {"directions", {"forward", "backward"}}},
                                       "", "");
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  auto op = Op::create(engine_, {*instance, direction, Backend::kCuda, LengthMode::kPow2, {}, {.deterministic = true}});
  ASSERT_TRUE(op.ok()) << op.status().message();
  const auto guard = ContextGuard::enter(driver_, 0);
  ASSERT_TRUE(guard.ok()) << guard.status().message();
  const Status prepared = (*op)->prepare(300, 0);
  ASSERT_TRUE(prepared.ok()) << prepared.message();

  const auto data = make_problem_data(instance->spec, direction, make_lengths(*instance, 300), 3, 0, instance->alpha);
  ASSERT_TRUE(data.ok()) << data.status().message();
  auto problem = DeviceProblem::upload(driver_, *data, 0);
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  const auto stream = DeviceStream::create(driver_);
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  auto workspace = make_workspace(driver_, **op, *problem, stream->get());
  ASSERT_TRUE(workspace.ok()) << workspace.status().message();
  const auto launch = [&] {
    return (*op)->launch(problem->values(), problem->count(), stream->get(), {workspace->data(), workspace->size()});
  };
  ASSERT_TRUE(launch().ok()) << launch().message();
  ASSERT_TRUE(stream->synchronize().ok());
  const auto outputs = problem->download_outputs();
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  const Agreement agreement = compare(*data, reference_outputs(*data), *outputs);
  EXPECT_TRUE(agreement.good()) << agreement.sentence;

  constexpr int kRelaxed = 2;
  void* graph = nullptr;
  void* executable = nullptr;
  ASSERT_EQ(graphs_.begin_capture(stream->get(), kRelaxed), 0);
  const Status captured = launch();
  ASSERT_EQ(graphs_.end_capture(stream->get(), &graph), 0);
  ASSERT_TRUE(captured.ok()) << captured.message();
  ASSERT_EQ(graphs_.instantiate(&executable, graph, 0), 0);
  // Only the graph has the program's kernels from here on.
  *op = nullptr;
  const size_t captured_modules = engine_->modules().size();
  for (int64_t other = 0; other < 4; ++other) {
    const auto passing =
        Op::create(engine_, {norm(64 + 8 * other), Direction::kForward, Backend::kCuda, LengthMode::kPow2, {}, {}});
    ASSERT_TRUE(passing.ok()) << passing.status().message();
    const Status loaded = (*passing)->prepare(1, 0);
    ASSERT_TRUE(loaded.ok()) << loaded.message();
  }
  EXPECT_LE(engine_->modules().size(), captured_modules + 2);
  for (int replay = 0; replay < 3; ++replay) {
    ASSERT_TRUE(problem->poison_outputs(stream->get()).ok());
    ASSERT_TRUE(workspace->fill(kPoison, stream->get()).ok());
    ASSERT_EQ(graphs_.launch(executable, stream->get()), 0);
    ASSERT_TRUE(stream->synchronize().ok());
    const auto again = problem->download_outputs();
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(*again, *outputs) << "replay " << replay;
  }
  graphs_.destroy_executable(executable);
  graphs_.destroy(graph);
}

INSTANTIATE_TEST_SUITE_P(Both, ProgramOnDevice, ::testing::Values(Direction::kForward, Direction::kBackward),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace hstujit
