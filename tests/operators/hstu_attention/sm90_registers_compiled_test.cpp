// With a libnvrtc: the configs of templates/attention/sm90_forward that have the least registers to spare do not spill.
#include <gtest/gtest.h>

#include <set>

#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

class Sm90Registers : public CompiledKernels {};

// Three CTAs on a multiprocessor have 128 registers a thread.
TEST_F(Sm90Registers, OfThreeCtasSufficeForLongMasks) {
  HstuAttentionParams window = make_params(DataType::kBf16, 64, 64), all = window, groups = window, semi_local = window;
  window.max_attn_len = 64, window.contextual_seq_len = 32;
  all.max_attn_len = 64, all.contextual_seq_len = 32, all.min_full_attn_seq_len = 16, all.num_targets = true;
  groups.dtype = DataType::kFp16, groups.num_targets = true, groups.target_group_size = 4;
  semi_local.sla_k1 = 256, semi_local.sla_k2 = 64, semi_local.contextual_seq_len = 16, semi_local.num_targets = true;
  const DeviceSpec hopper = *known_device("sm_90a");
  for (const HstuAttentionParams& params : {window, all, groups, semi_local}) {
    const HstuAttentionSpec spec(params);
    std::set<std::string> seen;  // stages change no registers
    for (const KernelConfig& config : accepted_of(**find_skeleton("attention/sm90_forward"), spec, hopper)) {
      const AttentionConfig& attention = config.attention();
      if (attention.blocks_per_sm != 3 || attention.pack_sequences) continue;
      if (seen.insert(attention.split_kv ? "split_kv" : attention.schedule).second) {
        expect_fits(spec, Direction::kForward, config, hopper);
      }
    }
    EXPECT_EQ(seen, (std::set<std::string>{"grid", "persistent", "split_kv"}));
  }
}

// Four have 96. They are tried beside three, and no choice without times.
TEST_F(Sm90Registers, OfFourCtasSufficeForHeadsOf32) {
  HstuAttentionParams plain = make_params(DataType::kBf16, 32, 32), targets = plain;
  targets.dtype = DataType::kFp16, targets.num_targets = true;
  const DeviceSpec hopper = *known_device("sm_90a");
  for (const HstuAttentionParams& params : {plain, targets}) {
    const HstuAttentionSpec spec(params);
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      std::set<std::string> seen;
      const std::vector<Candidate> all = search_space(spec, direction, hopper, {128, 4096, 0.3}).candidates;
      for (const Candidate& candidate : all) {
        const AttentionConfig& attention = candidate.config.attention();
        if (attention.blocks_per_sm != 4 || !candidate.config.skeleton.starts_with("attention/sm90")) continue;
        const std::string kind = attention.split_kv         ? "split_kv"
                                 : attention.pack_sequences ? "packed"
                                                            : attention.schedule;
        if (seen.insert(kind).second) expect_fits(spec, direction, candidate.config, hopper);
      }
      EXPECT_TRUE(seen.contains("persistent"));
      EXPECT_NE(all.front().config.attention().blocks_per_sm, 4);
    }
  }
}

}  // namespace
}  // namespace hstujit
