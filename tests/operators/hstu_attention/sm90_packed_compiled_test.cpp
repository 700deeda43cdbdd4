// Host side of the packed tiles of templates/attention/sm90_forward and sm90_backward_twopass: what is accepted and
// refused, how it is launched, when the cost model chooses it; with a libnvrtc, that it compiles without spills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "compiler/plan/packed_sequences.h"
#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/delta_hstu_attention/spec.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/short_sequences.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const Skeleton& skeleton() { return **find_skeleton("attention/sm90_forward"); }
const Skeleton& backward() { return **find_skeleton("attention/sm90_backward_twopass"); }
DeviceSpec hopper() { return *known_device("sm_90a"); }

KernelConfig packed_tile(int64_t block_n, int64_t stages, int64_t blocks_per_sm) {
  KernelConfig config;
  config.skeleton = skeleton().name();
  config.attention().block_m = 64;
  config.attention().block_n = block_n;
  config.attention().stages = stages;
  config.attention().consumers = 1;
  config.attention().schedule = "persistent";
  config.attention().blocks_per_sm = blocks_per_sm;
  config.attention().pack_sequences = true;
  return config;
}

std::string refusal(const OpSpec& spec, const KernelConfig& config, const Skeleton& of = skeleton()) {
  for (const Rejection& rejection : of.reject(spec, config, hopper())) {
    if (rejection.reason == "pack_sequences") return rejection.detail;
  }
  return "";
}

TEST(Sm90Packed, EveryMaskButNoBiasIsServed) {
  HstuAttentionParams plain = make_params(DataType::kBf16, 64, 64), targets = plain, mix = plain, semi_local = plain,
                      none = plain, factors = plain;
  targets.num_targets = true;
  mix.num_targets = true, mix.contextual_seq_len = 16, mix.max_attn_len = 64;
  semi_local.sla_k1 = 32, semi_local.sla_k2 = 8;
  none.full_mask = true, none.causal = false;
  factors.attn_scale = "rows";
  for (const HstuAttentionParams& params : {plain, targets, mix, semi_local, none, factors}) {
    const HstuAttentionSpec spec(params);
    EXPECT_THAT(reasons_of(skeleton(), spec, packed_tile(64, 2, 2), hopper()), IsEmpty()) << spec.to_json();
  }
  plain.rab_heads = 1;
  EXPECT_THAT(refusal(HstuAttentionSpec(plain), packed_tile(64, 2, 2)), HasSubstr("a bias (rab) has rows"));
}

TEST(Sm90Packed, IsRefusedWhereTilesAreOthers) {
  const HstuAttentionSpec spec(make_params(DataType::kBf16, 64, 64));
  KernelConfig wide = packed_tile(64, 2, 1), split = packed_tile(64, 2, 2);
  wide.attention().consumers = 2;
  wide.attention().block_m = 128;
  EXPECT_THAT(refusal(spec, wide), HasSubstr("pack_sequences with 2 consumers"));
  split.attention().schedule = "grid";
  EXPECT_THAT(reasons_of(skeleton(), spec, split, hopper()), IsEmpty()) << "one CTA for each tile";
  split.attention().split_kv = true;
  EXPECT_THAT(refusal(spec, split), HasSubstr("split_kv true; allowed"));

  const DeltaHstuAttentionSpec delta(DeltaHstuAttentionParams{make_params(DataType::kBf16, 64, 64)});
  KernelConfig grid = packed_tile(64, 2, 2);
  grid.attention().schedule = "grid";
  EXPECT_THAT(refusal(delta, grid), HasSubstr("delta_hstu_attention has few rows of each sequence in q"));
  for (const Skeleton* other : skeletons()) {
    if (other == &skeleton() || other == &backward() || other->family() != Family::kAttention) continue;
    EXPECT_THAT(refusal(spec, packed_tile(64, 2, 2), *other), HasSubstr("pack_sequences true; allowed: false"))
        << other->name();
  }
}

TEST(Sm90Packed, TilesAreThoseOfAllRows) {
  const HstuAttentionSpec spec(make_params(DataType::kBf16, 64, 64));
  const Signature signature = spec.signature(Direction::kForward);
  const KernelConfig config = packed_tile(64, 2, 3);
  const LaunchPlan plan = skeleton().launch_plan(spec, config, hopper());
  ASSERT_EQ(plan.grid.size(), 3u);
  EXPECT_EQ(plan.grid[0].source, GridFactor::Source::kSize);
  EXPECT_EQ(signature[static_cast<size_t>(plan.grid[0].argument)].name, "q");
  EXPECT_EQ(plan.grid[0].divisor, 64);
  EXPECT_EQ(plan.grid[1].constant, 4);
  EXPECT_EQ(signature[static_cast<size_t>(plan.grid[2].argument)].name, "seq_offsets");
  EXPECT_EQ(plan.grid[2].bias, -1);
  EXPECT_EQ(plan.grid[2].divisor, std::numeric_limits<int64_t>::max()) << "whether there is a sequence";
  EXPECT_EQ(plan.persistent_blocks, 3 * hopper().sm_count);
  EXPECT_EQ(constant_of(skeleton(), spec, config, "schedule_sequences"), 1) << "nothing is sorted";
  EXPECT_TRUE(plan.kernel_name.ends_with("_persistent3_packed")) << plan.kernel_name;
}

TEST(Sm90Packed, BackwardServesTheSame) {
  HstuAttentionParams params = make_params(DataType::kBf16, 64, 64);
  const HstuAttentionSpec spec(params);
  KernelConfig config = packed_tile(64, 2, 2);
  config.skeleton = backward().name();
  EXPECT_THAT(reasons_of(backward(), spec, config, hopper()), IsEmpty());
  const LaunchPlan plan = backward().launch_plan(spec, config, hopper());
  ASSERT_EQ(plan.grid.size(), 4u) << "tiles, heads, whether there is a sequence, roles";
  EXPECT_EQ(plan.grid[0].source, GridFactor::Source::kSize);
  EXPECT_EQ(plan.persistent_blocks, 2 * hopper().sm_count);
  EXPECT_TRUE(plan.kernel_name.ends_with("_persistent2_packed")) << plan.kernel_name;
  EXPECT_TRUE(backward().deterministic(config));

  KernelConfig grid = config, wide = config;
  grid.attention().schedule = "grid";
  wide.attention().consumers = 2;
  wide.attention().block_m = 128;
  EXPECT_THAT(refusal(spec, grid, backward()), HasSubstr("with schedule grid; allowed: with persistent"));
  EXPECT_THAT(refusal(spec, wide, backward()), HasSubstr("pack_sequences with 2 consumers"));
  params.rab_heads = 1;
  EXPECT_THAT(refusal(HstuAttentionSpec(params), config, backward()), HasSubstr("a bias (rab) has rows"));
}

// Without the small CTAs by mma.sync, which were not there when these were timed.
std::vector<Candidate> candidates(const OpSpec& spec, const ProblemSize& size,
                                  Direction direction = Direction::kForward) {
  std::vector<Candidate> all = search_space(spec, direction, hopper(), size).candidates;
  std::erase_if(
      all, [](const Candidate& one) { return is_for_short_sequences(one.config) && !packs_sequences(one.config); });
  return all;
}

// With heads of 64 and of 128 columns: sequences of some 30 rows, up to 256 or 512.
TEST(Sm90Packed, IsTheFirstChoiceForShortSequencesOnly) {
  for (const int64_t width : {64, 128}) {
    const HstuAttentionSpec spec(make_params(DataType::kBf16, width, width));
    for (const int64_t longest : {256, 512}) {
      const ProblemSize is_short{longest, 4096, 30.0 / static_cast<double>(longest)}, usual{longest};
      EXPECT_TRUE(candidates(spec, is_short).front().config.attention().pack_sequences) << width << " " << longest;
      EXPECT_FALSE(candidates(spec, usual).front().config.attention().pack_sequences) << width << " " << longest;
    }
  }
}

// Candidates that a tuning run tries (TunerOptions), on buckets whose sequences may be short: nobody knows before.
TEST(Sm90Packed, IsTriedInBucketsThatMayBeOfShortSequences) {
  const HstuAttentionSpec spec(make_params(DataType::kBf16, 64, 64));
  const auto tried = [&](const ProblemSize& size) {
    const std::vector<Candidate> all = candidates(spec, size);
    return std::any_of(all.begin(), all.end(), [&](const Candidate& candidate) {
      return candidate.config.attention().pack_sequences &&
             candidate.estimate_ms <= all.front().estimate_ms * skeleton().estimate_error();
    });
  };
  for (const int64_t longest : {64, 128, 256, 512, 1024}) EXPECT_TRUE(tried({longest})) << longest;
  for (const int64_t longest : {2048, 16384}) EXPECT_FALSE(tried({longest})) << longest;
  EXPECT_FALSE(tried({1024, 1, 1, true})) << "a small batch";
}

// Times on an H100 (docs/journal.md, entry 56), ms: without packed tiles, as the cost model chose without knowing the
// lengths, and with them.
struct MeasuredCell {
  const char* lengths;
  int64_t width, bucket, batch;
  std::vector<int64_t> drawn;  // some that stand for the batch's
  double without, packed;
  Direction direction = Direction::kForward;
};

// The lengths in the middle of `count` equal parts of what a cell was drawn from.
template <typename Quantile>
std::vector<int64_t> lengths_of(const Quantile& quantile, size_t count = 64) {
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < count; ++i) {
    lengths.push_back(std::llround(quantile((static_cast<double>(i) + 0.5) / static_cast<double>(count))));
  }
  return lengths;
}
auto power(double exponent, double longest) {
  return [=](double part) { return std::pow(1 + part * (std::pow(longest, 1 - exponent) - 1), 1 / (1 - exponent)); };
}
auto uniform(double low, double high) {
  return [=](double part) { return low + part * (high - low); };
}
// By the logistic distribution, which is close to the normal one.
auto log_normal(double median, double sigma, double longest) {
  return [=](double part) {
    return std::clamp(median * std::exp(sigma * std::log(part / (1 - part)) / 1.7), 1.0, longest);
  };
}

TEST(Sm90Packed, IsTheFirstChoiceWhereItWasMeasuredFaster) {
  const auto short_ones = power(1.2, 512);
  const auto tiny = uniform(1, 32);
  const auto some = log_normal(22, 0.8, 256);
  const std::vector<int64_t> just_over(1, 65), one_tile(1, 64);
  const MeasuredCell cells[] = {
      {"power law up to 512", 64, 512, 4096, lengths_of(short_ones), 0.326, 0.203},
      {"power law up to 128", 64, 128, 8192, lengths_of(power(1.05, 128)), 0.245, 0.146},
      {"1 to 32", 64, 64, 8192, lengths_of(tiny), 0.183, 0.110},
      {"log-normal up to 256", 64, 256, 4096, lengths_of(some), 0.160, 0.118},
      {"65 each", 64, 128, 2048, just_over, 0.156, 0.106},
      {"log-normal up to 512", 64, 512, 943, lengths_of(log_normal(75, 0.8, 512)), 0.100, 0.125},
      {"205 to 1024", 64, 1024, 256, lengths_of(uniform(205, 1024)), 0.188, 0.261},
      {"power law up to 512", 128, 512, 4096, lengths_of(short_ones), 0.621, 0.393},
      {"power law up to 128", 128, 128, 8192, lengths_of(power(1.05, 128)), 0.402, 0.287},
      {"1 to 32", 128, 64, 8192, lengths_of(tiny), 0.292, 0.202},
      {"log-normal up to 256", 128, 256, 4096, lengths_of(some), 0.270, 0.206},
      {"65 each", 128, 128, 2048, just_over, 0.292, 0.214},
      {"log-normal up to 512", 128, 512, 943, lengths_of(log_normal(75, 0.8, 512)), 0.184, 0.197},
      {"205 to 1024", 128, 1024, 256, lengths_of(uniform(205, 1024)), 0.326, 0.496},
      {"power law up to 512", 64, 512, 4096, lengths_of(short_ones), 0.644, 0.916, Direction::kBackward},
      {"1 to 32", 64, 64, 8192, lengths_of(tiny), 0.497, 0.369, Direction::kBackward},
      {"1 to 32", 128, 64, 8192, lengths_of(tiny), 0.703, 0.577, Direction::kBackward},
  };
  for (const MeasuredCell& cell : cells) {
    const HstuAttentionSpec spec(make_params(DataType::kBf16, cell.width, cell.width));
    const auto rows = static_cast<double>(std::accumulate(cell.drawn.begin(), cell.drawn.end(), int64_t{0}));
    const double mean = rows / static_cast<double>(cell.drawn.size());
    ProblemSize size{cell.bucket, cell.batch, mean / static_cast<double>(cell.bucket)};
    size.lengths = cell.drawn;
    EXPECT_EQ(packs_sequences(candidates(spec, size, cell.direction).front().config), cell.packed < cell.without)
        << to_string(cell.direction) << " " << cell.width << ", " << cell.lengths << ", mean " << mean;
  }
}

// The choice for a bucket's batches of short sequences, which are as the measured cell of that bucket.
TEST(Sm90Packed, IsTheFirstChoiceOfTheClassWhereItWasMeasuredFaster) {
  const auto packs = [](int64_t width, int64_t bucket, Direction direction) {
    const HstuAttentionSpec spec(make_params(DataType::kBf16, width, width));
    return packs_sequences(candidates(spec, size_of_short(bucket), direction).front().config);
  };
  for (const int64_t width : {64, 128}) {
    for (const int64_t bucket : {128, 256, 512, 1024, 4096, 16384}) {
      EXPECT_TRUE(packs(width, bucket, Direction::kForward)) << width << " " << bucket;
      if (width == 128 && bucket == 512) continue;  // backward: as good by the model, and not measured
      EXPECT_EQ(packs(width, bucket, Direction::kBackward), bucket <= 256) << width << " " << bucket;
    }
  }
}

TEST(Sm90Packed, BackwardIsTriedForShortSequencesOnly) {
  const HstuAttentionSpec spec(make_params(DataType::kBf16, 64, 64));
  const auto over_best = [&](const ProblemSize& size) {
    const std::vector<Candidate> all = candidates(spec, size, Direction::kBackward);
    const auto packed = std::find_if(
        all.begin(), all.end(), [](const Candidate& candidate) { return candidate.config.attention().pack_sequences; });
    return packed == all.end() ? 1e9 : packed->estimate_ms / all.front().estimate_ms;
  };
  EXPECT_LE(over_best({256, 4096, 0.06}), 1.0);
  EXPECT_GT(over_best({256}), 1.0);
  EXPECT_LE(over_best({64}), backward().estimate_error());
  EXPECT_GT(over_best({2048}), 2.0);
}

class Sm90PackedCompiled : public CompiledKernels {};

TEST_F(Sm90PackedCompiled, TheSpaceFitsItsRegisters) {
  HstuAttentionParams plain = make_params(DataType::kBf16, 64, 64), targets = make_params(DataType::kFp16, 128, 128),
                      mix = make_params(DataType::kBf16, 128, 128);
  targets.num_targets = true;
  mix.num_targets = true, mix.contextual_seq_len = 16, mix.max_attn_len = 64;
  for (const HstuAttentionParams& params : {plain, targets, mix}) {
    const HstuAttentionSpec spec(params);
    std::set<std::pair<int64_t, int64_t>> seen;  // stages change no registers
    for (const KernelConfig& config : accepted_of(skeleton(), spec, hopper())) {
      const AttentionConfig& attention = config.attention();
      if (!attention.pack_sequences || !seen.insert({attention.block_n, attention.blocks_per_sm}).second) continue;
      expect_fits(spec, Direction::kForward, config, hopper());
    }
    EXPECT_FALSE(seen.empty());
    KernelConfig config = packed_tile(params.attn_dim == 64 ? 64 : 32, 2, 2);
    config.skeleton = backward().name();
    expect_fits(spec, Direction::kBackward, config, hopper());
  }
}

}  // namespace
}  // namespace hstujit
