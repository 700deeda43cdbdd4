// With a libnvrtc: every skeleton compiles kernels of instances with num_contexts, under all parts of a mask, without
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

class CompiledContexts : public CompiledKernels {
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

HstuAttentionParams with_contexts(DataType dtype, int64_t attn_dim, int64_t hidden_dim) {
  HstuAttentionParams params = make_params(dtype, attn_dim, hidden_dim);
  params.num_contexts = true;
  return params;
}

TEST_F(CompiledContexts, OnHopper) {
  HstuAttentionParams plain = with_contexts(DataType::kBf16, 64, 64), window = plain, groups = plain, wide = plain;
  window.max_attn_len = 64, window.min_full_attn_seq_len = 16, window.num_targets = true;
  groups.dtype = DataType::kFp16, groups.num_targets = true, groups.target_group_size = 4;
  groups.offsets_dtype = DataType::kInt32;
  wide.attn_dim = wide.hidden_dim = 128, wide.max_attn_len = 64, wide.num_targets = true;
  const DeviceSpec hopper = *known_device("sm_90a");
  for (const HstuAttentionParams& params : {plain, window, groups, wide}) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward})
      expect_all_fit(HstuAttentionSpec(params), direction, hopper);
  }
  for (const char* name :
       {"attention/sm90_forward", "attention/sm90_backward_twopass", "attention/sm90_backward_fused"})
    EXPECT_TRUE(skeletons_.contains(name)) << name;
}

TEST_F(CompiledContexts, OfTheLastRows) {
  HstuAttentionParams params = with_contexts(DataType::kBf16, 128, 128);
  params.sla_k1 = 256, params.sla_k2 = 64, params.num_targets = true;
  for (const char* arch : {"sm_90a", "sm_80"})
    expect_all_fit(DeltaHstuAttentionSpec(DeltaHstuAttentionParams{params}), Direction::kForward, *known_device(arch));
}

TEST_F(CompiledContexts, OnAmpere) {
  HstuAttentionParams params = with_contexts(DataType::kFp32, 64, 64);
  params.max_attn_len = 64, params.min_full_attn_seq_len = 16, params.num_targets = true;
  for (const Direction direction : {Direction::kForward, Direction::kBackward})
    expect_all_fit(HstuAttentionSpec(params), direction, *known_device("sm_80"));
  EXPECT_EQ(skeletons_, (std::set<std::string>{"attention/sm80_backward", "attention/sm80_forward"}));
}

}  // namespace
}  // namespace hstujit
