// The schedule "per_sequence" of the sm80 skeletons, forward and backward: what it launches, what it is for, and where
// it is the first choice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

DeviceSpec device(const char* name) { return *known_device(name); }

class Sm80SmallCtas : public testing::TestWithParam<Direction> {
 protected:
  const Skeleton& skeleton() const {
    return **find_skeleton(is_forward() ? "attention/sm80_forward" : "attention/sm80_backward");
  }
  bool is_forward() const { return GetParam() == Direction::kForward; }
  HstuAttentionSpec make_spec(DataType dtype, int64_t width) const {
    HstuAttentionParams params;
    params.heads = 4;
    params.attn_dim = params.hidden_dim = width;
    params.dtype = dtype;
    params.num_targets = !is_forward();
    return HstuAttentionSpec(params);
  }
  bool are_first_choice(int64_t width, const ProblemSize& size) const {
    const KernelConfig config =
        *heuristic_config(make_spec(DataType::kBf16, width), GetParam(), device("sm_90a"), size);
    return config.skeleton == skeleton().name() && config.attention().schedule == "per_sequence";
  }
};

INSTANTIATE_TEST_SUITE_P(Both, Sm80SmallCtas, testing::Values(Direction::kForward, Direction::kBackward),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// CTAs go by sequences and heads, and backward by roles, whatever the lengths are.
TEST_P(Sm80SmallCtas, AreLaunchedForEachSequenceHeadAndRole) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 32);
  size_t small = 0;
  for (const KernelConfig& config : accepted_of(skeleton(), spec, device("sm_90a"))) {
    const bool per_sequence = config.attention().schedule == "per_sequence";
    const LaunchPlan plan = skeleton().launch_plan(spec, config, device("sm_90a"));
    int64_t constants = 1;
    bool by_rows = false;
    for (const GridFactor& factor : plan.grid) {
      if (factor.source == GridFactor::Source::kConstant) constants *= factor.constant;
      by_rows |= factor.source == GridFactor::Source::kScalar;
    }
    EXPECT_EQ(by_rows, !per_sequence) << describe(config);
    EXPECT_EQ(plan.kernel_name.ends_with("_per_sequence"), per_sequence);
    if (!per_sequence) continue;
    const int64_t roles = is_forward() ? 1 : constant_of(skeleton(), spec, config, "roles");
    EXPECT_EQ(constants, spec.params().heads * roles);
    EXPECT_LE(config.attention().blocks_per_sm * plan.threads, device("sm_90a").max_threads);
    ++small;
  }
  EXPECT_GT(small, is_forward() ? 10u : 5u);
}

TEST_P(Sm80SmallCtas, AreFor16BitData) {
  KernelConfig config = accepted_of(skeleton(), make_spec(DataType::kBf16, 64), device("sm_90a")).front();
  config.attention().schedule = "per_sequence";
  config.attention().activation = "mufu";
  const auto reasons = [&](DataType dtype) {
    return reasons_of(skeleton(), make_spec(dtype, 64), config, device("sm_90a"));
  };
  EXPECT_THAT(reasons(DataType::kBf16), testing::Not(testing::Contains("schedule")));
  EXPECT_THAT(reasons(DataType::kFp16), testing::Not(testing::Contains("schedule")));
  EXPECT_THAT(reasons(DataType::kFp32), testing::Contains("schedule"));
}

// As measured on an H200 (docs/journal.md, entry 66): thousands of short sequences in short buckets, of narrow heads.
TEST_P(Sm80SmallCtas, AreTheFirstChoiceOfShortSequencesWithNarrowHeads) {
  for (const int64_t bucket : {128, 256}) EXPECT_TRUE(are_first_choice(32, size_of_short(bucket))) << bucket;
  for (const int64_t width : {32, 64}) EXPECT_TRUE(are_first_choice(width, {32, kShortBatch, 0.3})) << width;
  for (const int64_t bucket : {1024, 4096}) EXPECT_FALSE(are_first_choice(32, size_of_short(bucket))) << bucket;
  EXPECT_FALSE(are_first_choice(128, size_of_short(128)));
  EXPECT_FALSE(are_first_choice(128, {32, kShortBatch, 0.3}));
  for (const int64_t bucket : {128, 1024}) EXPECT_FALSE(are_first_choice(32, {bucket, 256, 0.6})) << bucket;
}

// No device has room for more CTAs of whatever size.
TEST_P(Sm80SmallCtas, AreNoMoreThanAMultiprocessorHasRoomFor) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 32);
  for (const auto& [name, most] : {std::pair{"sm_86", 16}, std::pair{"sm_89", 24}}) {
    size_t refused = 0;
    for (const KernelConfig& config : skeleton().space(spec)) {
      if (config.attention().blocks_per_sm <= most) continue;
      EXPECT_THAT(reasons_of(skeleton(), spec, config, device(name)), testing::Contains("threads")) << describe(config);
      ++refused;
    }
    EXPECT_EQ(refused > 0, most == 16) << "the space goes to 21";
  }
}

}  // namespace
}  // namespace hstujit
