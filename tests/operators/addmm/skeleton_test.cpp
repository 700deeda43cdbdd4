// Checks which kernels of products an instance may have.
#include <gtest/gtest.h>

#include "compiler/plan/search_space.h"

namespace hstujit {
namespace {

OpSpecPtr addmm(int64_t k, int64_t n, int64_t alignment = 16) {
  return *parse_op_spec({{"op", "addmm"}, {"k", k}, {"n", n}, {"alignment", alignment}}, "");
}

TEST(GemmSkeletons, TensorMapsLoadRowsOfWholePieces) {
  const DeviceSpec device = *known_device("sm_90a");
  const Skeleton& hopper = **find_skeleton("gemm/sm90");
  const KernelConfig config = {"gemm/sm90", GemmConfig{128, 128, 4}};
  EXPECT_TRUE(hopper.reject(*addmm(64, 128), config, device).empty());
  for (const OpSpecPtr& spec : {addmm(64, 50), addmm(50, 64), addmm(64, 64, 4)}) {
    const std::vector<Rejection> reasons = hopper.reject(*spec, config, device);
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_EQ(reasons[0].reason, "alignment");
    EXPECT_EQ(reasons[0].detail, "rows begin at multiples of 4 bytes, and the tensor maps that load them need 16");
  }
}

// Hopper has a kernel for any of them.
TEST(GemmSkeletons, AnyWidthHasAKernel) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    for (const auto& [k, n] : {std::pair{1, 1}, {25, 50}, {50, 25}, {65535, 65535}}) {
      const KernelConfig chosen = heuristic_config(*addmm(k, n), Direction::kForward, *known_device(arch), {}).value();
      EXPECT_EQ(chosen.skeleton, "gemm/sm80") << arch << k << n;
    }
  }
}

}  // namespace
}  // namespace hstujit
