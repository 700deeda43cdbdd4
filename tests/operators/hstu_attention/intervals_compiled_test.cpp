// With a libnvrtc: every skeleton compiles kernels of instances with attn_func, of one interval and of several, without
// spills; one of each schedule.
#include <gtest/gtest.h>

#include <set>

#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/delta_hstu_attention/spec.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

class CompiledIntervals : public CompiledKernels {
 protected:
  // The best of each kind, as they are tried in tuning.
  void expect_all_fit(const OpSpec& spec, Direction direction, const DeviceSpec& device) {
    for (const Candidate& candidate : search_space(spec, direction, device, {128, 4096, 0.3}).candidates) {
      const AttentionConfig& attention = candidate.config.attention();
      const std::string kind = candidate.config.skeleton + " " + attention.schedule +
                               (attention.split_kv ? " split_kv" : "") + (attention.pack_sequences ? " packed" : "");
      if (seen_.insert(kind + std::string(to_string(direction)) + spec.to_json().dump()).second)
        expect_fits(spec, direction, candidate.config, device);
      skeletons_.insert(candidate.config.skeleton);
    }
  }

  std::set<std::string> seen_, skeletons_;
};

HstuAttentionParams with_intervals(DataType dtype, int64_t attn_dim, int64_t hidden_dim, int64_t numbers) {
  HstuAttentionParams params = make_params(dtype, attn_dim, hidden_dim);
  params.causal = false;
  params.attn_func = numbers;
  params.attn_func_heads = 1;
  return params;
}

TEST_F(CompiledIntervals, OnHopper) {
  HstuAttentionParams heads = with_intervals(DataType::kFp16, 64, 64, 3);
  heads.attn_func_heads = heads.heads;
  const HstuAttentionParams all[] = {with_intervals(DataType::kBf16, 64, 64, 3), heads,
                                     with_intervals(DataType::kBf16, 128, 128, 3),
                                     with_intervals(DataType::kBf16, 128, 128, 11)};
  const DeviceSpec hopper = *known_device("sm_90a");
  for (const HstuAttentionParams& params : all) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward})
      expect_all_fit(HstuAttentionSpec(params), direction, hopper);
  }
  for (const char* name :
       {"attention/sm90_forward", "attention/sm90_backward_twopass", "attention/sm90_backward_fused"})
    EXPECT_TRUE(skeletons_.contains(name)) << name;
}

TEST_F(CompiledIntervals, OfTheLastRows) {
  const HstuAttentionParams params = with_intervals(DataType::kBf16, 128, 128, 3);
  for (const char* arch : {"sm_90a", "sm_80"})
    expect_all_fit(DeltaHstuAttentionSpec(DeltaHstuAttentionParams{params}), Direction::kForward, *known_device(arch));
}

TEST_F(CompiledIntervals, OnAmpere) {
  const HstuAttentionParams params = with_intervals(DataType::kFp32, 64, 64, 3);
  for (const Direction direction : {Direction::kForward, Direction::kBackward})
    expect_all_fit(HstuAttentionSpec(params), direction, *known_device("sm_80"));
  EXPECT_EQ(skeletons_, (std::set<std::string>{"attention/sm80_backward", "attention/sm80_forward"}));
}

}  // namespace
}  // namespace hstujit
