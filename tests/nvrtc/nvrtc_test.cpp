// Compiles small kernels for several architectures. Needs libnvrtc, no GPU.
#include "compiler/nvrtc/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kAxpy = R"(extern "C" __global__ void axpy(float* y, const float* x, float a, int n) {
  __shared__ float tile[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x & 63] = a;
  __syncthreads();
  if (i < n) y[i] += tile[(threadIdx.x + 1) & 63] * x[i];
}
)";

// 96 live values in 1024 threads of two resident blocks, which leaves 32 registers to each.
constexpr const char* kSpilling =
    R"(extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* y, const float* x) {
  float v[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) v[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) v[i] = v[i] * v[(i * 7 + 5) % 96] + v[(i * 11 + 3) % 96];
#pragma unroll
  for (int i = 0; i < 96; ++i) y[i * 1024 + threadIdx.x] = v[i];
}
)";

// Without __launch_bounds__ the assembler does not know the register count at entry.
constexpr const char* kRedistributing = R"(extern "C" __global__ void redistributing(float* y) {
  if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  y[threadIdx.x] = 1.0f;
}
)";

class NvrtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("HSTUJIT_NVRTC");
    auto opened = Nvrtc::open(path != nullptr ? path : "");
    if (!opened.ok()) GTEST_SKIP() << opened.status().message();
    nvrtc_ = *opened;
  }

  static CompileInput input(std::string source, std::string entry, std::string arch = "sm_90a") {
    CompileInput input;
    input.source = std::move(source);
    input.entry = std::move(entry);
    input.file_name = input.entry + ".cu";
    input.arch = std::move(arch);
    return input;
  }

  std::shared_ptr<const Nvrtc> nvrtc_;
};

TEST_F(NvrtcTest, CompilesForHopperAndAmpere) {
  for (const char* arch : {"sm_90a", "sm_80"}) {
    const auto output = nvrtc_->compile(input(kAxpy, "axpy", arch));
    ASSERT_TRUE(output.ok()) << output.status().message();
    EXPECT_GT(output->cubin.size(), 1000u);
    EXPECT_GT(output->resources.registers, 0);
    EXPECT_EQ(output->resources.static_shared_bytes, 256) << arch;
    EXPECT_EQ(output->resources.spill_store_bytes, 0);
    EXPECT_THAT(output->rejects, IsEmpty());
    EXPECT_EQ(output->nvrtc_version, nvrtc_->version());
    EXPECT_GT(output->compile_ms, 0);
  }
}

TEST_F(NvrtcTest, LogAndCubinAgree) {
  for (const char* arch : {"sm_90a", "sm_89", "sm_80"}) {
    const auto output = nvrtc_->compile(input(kAxpy, "axpy", arch));
    ASSERT_TRUE(output.ok()) << output.status().message();
    const auto from_cubin = resources_from_cubin(output->cubin, "axpy");
    ASSERT_TRUE(from_cubin.ok()) << from_cubin.status().message();
    EXPECT_EQ(from_cubin->registers, output->resources.registers) << arch;
    EXPECT_EQ(from_cubin->stack_bytes, output->resources.stack_bytes) << arch;
    EXPECT_EQ(from_cubin->static_shared_bytes, output->resources.static_shared_bytes) << arch;
  }
}

TEST_F(NvrtcTest, IsDeterministic) {
  const auto first = nvrtc_->compile(input(kAxpy, "axpy"));
  const auto second = nvrtc_->compile(input(kAxpy, "axpy"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->cubin, second->cubin);
}

TEST_F(NvrtcTest, SyntaxErrorNamesFileAndLine) {
  std::string log;
  const auto output = nvrtc_->compile(input("extern \"C\" __global__ void k(float* y) {\n  y[0] = 1\n}\n", "k"), &log);
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.status().code(), Code::kCompileFailed);
  EXPECT_THAT(output.status().message(), HasSubstr("k.cu(3): error: expected a \";\""));
  EXPECT_THAT(log, HasSubstr("1 error detected"));
}

TEST_F(NvrtcTest, AssemblerErrorIsReported) {
  const auto output = nvrtc_->compile(input("extern \"C\" __global__ void k() { asm volatile(\"bogus;\"); }", "k"));
  ASSERT_FALSE(output.ok());
  EXPECT_THAT(output.status().message(), HasSubstr("bogus"));
}

TEST_F(NvrtcTest, MissingEntryIsAnErrorThatListsTheKernels) {
  const auto output = nvrtc_->compile(input(kAxpy, "saxpy"));
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.status().code(), Code::kCompileFailed);
  EXPECT_THAT(output.status().message(), AllOf(HasSubstr("\"saxpy\""), HasSubstr("it defines: axpy")));
}

TEST_F(NvrtcTest, SpillsAreReportedAndRejected) {
  const auto output = nvrtc_->compile(input(kSpilling, "spilling"));
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_GT(output->resources.spill_store_bytes, 0);
  EXPECT_GT(output->resources.spill_load_bytes, 0);
  EXPECT_GT(output->resources.stack_bytes, 0);
  EXPECT_THAT(output->rejects, Contains(Field(&KernelReject::reason, "spill")));
}

TEST_F(NvrtcTest, FiguresOfSeveralKernelsAreTheWorst) {
  const std::string both = std::string(kAxpy) + kSpilling;
  const auto alone = nvrtc_->compile(input(both, "axpy"));
  CompileInput together = input(both, "axpy");
  together.others = {"spilling"};
  const auto output = nvrtc_->compile(together);
  ASSERT_TRUE(alone.ok() && output.ok());
  EXPECT_THAT(alone->rejects, IsEmpty());
  EXPECT_GT(output->resources.spill_store_bytes, 0);
  EXPECT_GT(output->resources.registers, alone->resources.registers);
  EXPECT_EQ(output->resources.static_shared_bytes, 256);
  EXPECT_THAT(output->rejects, Contains(Field(&KernelReject::reason, "spill")));
  together.others = {"saxpy"};
  EXPECT_THAT(nvrtc_->compile(together).status().message(), HasSubstr("\"saxpy\""));
}

TEST_F(NvrtcTest, IgnoredSetmaxnregIsRejected) {
  const auto output = nvrtc_->compile(input(kRedistributing, "redistributing"));
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_THAT(output->rejects, Contains(Field(&KernelReject::reason, "setmaxnreg_ignored")));
  EXPECT_THAT(output->resources.warnings, Contains(HasSubstr("setmaxnreg")));
}

TEST_F(NvrtcTest, LineinfoAddsLineTables) {
  CompileInput with = input(kAxpy, "axpy");
  with.lineinfo = true;
  const auto output = nvrtc_->compile(with);
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_THAT(output->cubin, HasSubstr(".debug_line"));
}

TEST_F(NvrtcTest, UnknownArchitectureIsUnsupported) {
  const auto output = nvrtc_->compile(input(kAxpy, "axpy", "sm_20"));
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.status().code(), Code::kUnsupported);
  EXPECT_THAT(output.status().message(), AllOf(HasSubstr("sm_20"), HasSubstr("sm_90")));
}

TEST_F(NvrtcTest, InvalidInputsAreNamed) {
  const auto message = [this](const CompileInput& bad) {
    const auto output = nvrtc_->compile(bad);
    EXPECT_FALSE(output.ok());
    EXPECT_EQ(output.status().code(), Code::kInvalidArgument);
    return output.status().message();
  };
  EXPECT_THAT(message(input("", "k")), HasSubstr("source"));
  EXPECT_THAT(message(input(kAxpy, "")), HasSubstr("entry"));
  for (const char* arch : {"", "90a", "sm_", "sm_90x", "compute_90"})
    EXPECT_THAT(message(input(kAxpy, "axpy", arch)), HasSubstr("arch"));
  CompileInput standard = input(kAxpy, "axpy");
  standard.cpp_standard = 14;
  EXPECT_THAT(message(standard), HasSubstr("14"));
}

TEST_F(NvrtcTest, ThreadsCompileAtOnce) {
  const auto expected = nvrtc_->compile(input(kAxpy, "axpy"));
  ASSERT_TRUE(expected.ok());
  std::vector<std::string> cubins(4);
  std::vector<std::thread> threads;
  for (std::string& cubin : cubins) {
    threads.emplace_back([this, &cubin] {
      const auto output = nvrtc_->compile(input(kAxpy, "axpy"));
      if (output.ok()) cubin = output->cubin;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& cubin : cubins) EXPECT_EQ(cubin, expected->cubin);
}

// A handler without SA_RESTART is how Python hears Ctrl-C while it waits.
TEST_F(NvrtcTest, LeavesTheHandlerOfInterruptsAsItWas) {
  struct sigaction wanted = {}, earlier = {}, now = {};
  wanted.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGINT, &wanted, &earlier), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([this] { EXPECT_TRUE(nvrtc_->compile(input(kAxpy, "axpy")).ok()); });
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(sigaction(SIGINT, &earlier, &now), 0);
  EXPECT_EQ(now.sa_handler, wanted.sa_handler);
  EXPECT_EQ(now.sa_flags & SA_RESTART, 0);
}

// exit() destroys what a compile uses.
TEST_F(NvrtcTest, ExitWaitsForWhatIsCompiled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_while_compiling = [this] {
    for (int i = 0; i < 2; ++i) {
      std::thread([nvrtc = nvrtc_] {
        while (nvrtc->compile(input(kSpilling, "spilling")).ok()) continue;
      }).detach();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::exit(0);
  };
  for (int i = 0; i < 5; ++i) EXPECT_EXIT(exit_while_compiling(), testing::ExitedWithCode(0), "");
}

TEST_F(NvrtcTest, OpensFromItsOwnFolder) {
  const std::string folder = nvrtc_->path().substr(0, nvrtc_->path().rfind('/'));
  const auto opened = Nvrtc::open(folder);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->version(), nvrtc_->version());
}

TEST(NvrtcOptionsTest, NoPathNoFastMath) {
  CompileInput input;
  input.arch = "sm_90a";
  EXPECT_THAT(nvrtc_options(input),
              ::testing::ElementsAre("--gpu-architecture=sm_90a", "--std=c++17", "-default-device", "-Xptxas=-v"));
}

TEST(NvrtcMissingTest, SentenceSaysWhatWasLookedForAndWhere) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const std::string path = folder->path().native();
  const auto opened = Nvrtc::open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::kNoCompiler);
  EXPECT_THAT(opened.status().message(), AllOf(HasSubstr("NVRTC"), HasSubstr(path + "/libnvrtc.so.13")));
}

TEST(NvrtcMissingTest, AFileThatIsNoLibraryIsRefused) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const std::string path = (folder->path() / "libnvrtc.so.13").native();
  ASSERT_TRUE(write_file_atomically(path, "not a library").ok());
  const auto opened = Nvrtc::open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::kNoCompiler);
  EXPECT_THAT(opened.status().message(), AllOf(HasSubstr(path), HasSubstr(", as HSTUJIT_NVRTC says: "),
                                               HasSubstr("; unset the variable"), Not(HasSubstr("set HSTUJIT_NVRTC"))));
}

}  // namespace
}  // namespace hstujit
