// Reads recorded logs and damaged cubins; needs neither libnvrtc nor a GPU.
#include "compiler/nvrtc/resource_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstujit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTwoKernels = R"(axpy.cu(8): warning #177-D: variable "unused" was declared but never referenced
  extern "C" __global__ void other(float* y) { int unused; }
                                                   ^

ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
ptxas         .     1048 bytes stack frame, 1600 bytes spill stores, 2136 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 1048 bytes cumulative stack size
ptxas info    : Compile time = 76.032 ms
ptxas info    : Compiling entry function 'axpy' for 'sm_90a'
ptxas info    : Function properties for axpy
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 256 bytes smem, 376 bytes cmem[0]
)";

TEST(ResourceReportTest, FiguresBelongToTheirKernel) {
  const auto axpy = resources_from_log(kTwoKernels, "axpy");
  ASSERT_TRUE(axpy.ok());
  EXPECT_EQ(axpy->registers, 12);
  EXPECT_EQ(axpy->static_shared_bytes, 256);
  EXPECT_EQ(axpy->stack_bytes, 0);

  const auto other = resources_from_log(kTwoKernels, "other");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->registers, 32);
  EXPECT_EQ(other->stack_bytes, 1048);
  EXPECT_EQ(other->spill_store_bytes, 1600);
  EXPECT_EQ(other->spill_load_bytes, 2136);
  EXPECT_EQ(other->static_shared_bytes, 0);
}

TEST(ResourceReportTest, UnknownKernelIsNotFound) {
  const auto missing = resources_from_log(kTwoKernels, "axp");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_FALSE(resources_from_log("", "axpy").ok());
}

TEST(ResourceReportTest, WarningsAreCollectedOnce) {
  const std::string twice = std::string(kTwoKernels) + kTwoKernels;
  EXPECT_THAT(log_warnings(twice), ElementsAre(HasSubstr("#177-D")));
}

TEST(ResourceReportTest, SpillsAreRejected) {
  const auto other = resources_from_log(kTwoKernels, "other");
  ASSERT_TRUE(other.ok());
  const auto rejects = reject_reasons(*other, kTwoKernels);
  ASSERT_EQ(rejects.size(), 1u);
  EXPECT_EQ(rejects[0].reason, "spill");
  EXPECT_THAT(rejects[0].detail, HasSubstr("1600"));
}

std::string reason_of(const std::string& line) {
  const auto rejects = reject_reasons({}, "ptxas info    : 0 bytes gmem\n" + line + "\n" + line + "\n");
  return rejects.size() == 1 ? rejects[0].reason : std::to_string(rejects.size()) + " reasons";
}

TEST(ResourceReportTest, AssemblerAdvisoriesHaveNames) {
  EXPECT_EQ(reason_of("ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum "
                      "register requirements."),
            "setmaxnreg_ignored");
  EXPECT_EQ(reason_of("ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
                      "register count at entry."),
            "setmaxnreg_ignored");
  EXPECT_EQ(reason_of("ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized "
                      "due to insufficient register resources in function 'k'"),
            "wgmma_serialized");
  EXPECT_EQ(reason_of("ptxas warning : (C7520) reworded"), "wgmma_serialized");
  EXPECT_EQ(reason_of("ptxas info    : (C7517) warpgroup.wait is injected in around line 167 by compiler"),
            "wgmma_wait_injected");
  EXPECT_EQ(reason_of("ptxas info    : (C7599) something new"), "assembler_advisory");
}

TEST(ResourceReportTest, OtherMessagesAreNoAdvisories) {
  EXPECT_THAT(reject_reasons({}, "ptxas info : (C7608) text\nC7512\n(C75\n(C75x2) y\n(C7512"), IsEmpty());
}

TEST(ResourceReportTest, DamagedCubinsAreRefused) {
  std::string header(64, '\0');
  header.replace(0, 6,
                 std::string("\x7f"
                             "ELF\x02\x01",
                             6));
  const std::string host_elf = header;
  header[18] = static_cast<char>(190);
  std::string far_table = header;
  far_table[0x2f] = '\x7f';  // section table far past the end
  far_table[0x3c] = 4;
  for (const std::string& bytes : {std::string(), std::string("cubin"), host_elf, header, far_table}) {
    const auto resources = resources_from_cubin(bytes, "k");
    ASSERT_FALSE(resources.ok());
    EXPECT_EQ(resources.status().code(), Code::kCompileFailed);
  }
}

}  // namespace
}  // namespace hstujit
