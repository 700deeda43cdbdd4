#include "compiler/plan/search_space.h"

#include <gmock/gmock.h>

#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {
namespace {

const HstuAttentionSpec& spec() {
  static const HstuAttentionSpec spec({.heads = 4, .attn_dim = 64, .hidden_dim = 64});
  return spec;
}

const ProblemSize kSize{1024, 256, 0.6};

TEST(SearchSpace, FastestEstimateFirstAndTiesInTheSkeletonsOrder) {
  const SearchSpace space = search_space(spec(), Direction::kForward, *known_device("sm_90a"), kSize);
  ASSERT_EQ(space.candidates.size(), 4u);
  EXPECT_EQ(space.candidates[0].config.attention().block_m, 128);
  EXPECT_EQ(space.candidates[0].config.attention().schedule, "grid");
  EXPECT_EQ(space.candidates[1].config.attention().block_m, 128);
  EXPECT_EQ(space.candidates[1].config.attention().schedule, "persistent");
  EXPECT_EQ(space.candidates[3].config.attention().block_m, 64);
  EXPECT_EQ(space.rejected.size(), 8u);
  EXPECT_EQ(space.rejected.back().reasons[0].reason, "shared_memory");
}

TEST(SearchSpace, TheHeuristicIsTheFirstCandidate) {
  const auto config = heuristic_config(spec(), Direction::kForward, *known_device("sm_90a"), kSize);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->attention().block_m, 128);
}

TEST(SearchSpace, NothingFitsIsUnsupportedWithTheCommonestReasons) {
  const auto config = heuristic_config(spec(), Direction::kForward, *known_device("sm_80"), kSize);
  EXPECT_EQ(config.status().code(), Code::kUnsupported);
  EXPECT_EQ(config.status().message(),
            "hstu_attention forward has no kernel for NVIDIA A100-SXM4-80GB (sm_80): every candidate is ruled out: "
            "device (12 of 12 "
            "candidates): needs sm_90a");
  EXPECT_THAT(
      heuristic_config(spec(), Direction::kBackward, *known_device("sm_90a"), kSize).status().message(),
      testing::HasSubstr("hstu_attention backward has no kernel for NVIDIA H200 (sm_90a): no template implements it"));
}

TEST(SearchSpace, ACandidateCountsOnceUnderEachReason) {
  const std::vector<RejectedCandidate> rejected = {{{}, {{"arch", "a"}, {"arch", "b"}, {"threads", "c"}}},
                                                   {{}, {{"arch", "a"}}}};
  EXPECT_THAT(count_reasons(rejected), testing::ElementsAre(testing::Pair("arch", 2), testing::Pair("threads", 1)));
}

TEST(SearchSpace, OnlyDeterministicKernelsWhereTheyAreAskedFor) {
  const DeviceSpec device = *known_device("sm_90a");
  const SearchSpace space = search_space(spec(), Direction::kForward, device, kSize, {.deterministic = true});
  ASSERT_EQ(space.candidates.size(), 2u);
  EXPECT_EQ(space.candidates[0].config.attention().block_m, 64);
  EXPECT_EQ(space.rejected.size(), 10u);
  int refused = 0;
  for (const RejectedCandidate& rejected : space.rejected) {
    ASSERT_EQ(rejected.reasons.size(), 1u);
    if (rejected.reasons[0].reason != "deterministic") continue;
    ++refused;
    EXPECT_EQ(rejected.config.attention().block_m, 128);
    EXPECT_THAT(rejected.reasons[0].detail,
                testing::HasSubstr("gives results that differ in their last bits from run to run"));
  }
  EXPECT_EQ(refused, 2) << "what cannot run at all is refused for that alone";
  const auto config = heuristic_config(spec(), Direction::kForward, device, kSize, {.deterministic = true});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->attention().block_m, 64);
}

TEST(Registry, SkeletonsAreFoundByName) {
  const auto found = find_skeleton("fake/usable");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)->name(), "fake/usable");
  EXPECT_EQ(find_skeleton("fake/none").status().message(),
            "skeleton \"fake/none\" is not part of this build; allowed: fake/unusable, fake/usable");
  EXPECT_EQ(find_skeleton("fake/useable").status().message(),
            "skeleton \"fake/useable\" is not part of this build, did you mean \"fake/usable\"?; allowed: "
            "fake/unusable, fake/usable");
}

}  // namespace
}  // namespace hstujit
