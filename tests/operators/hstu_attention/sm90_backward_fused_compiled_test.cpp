// Host side of templates/attention/sm90_backward_fused/kernel.cuh: what Hopper gets a config for, what is refused and
// why, and figures that add up; with a libnvrtc, that kernels compile without spills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "templates/attention/sm90_backward_fused/resources.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

using testing::Contains;
using Source = GridFactor::Source;

const Skeleton& skeleton() { return **find_skeleton("attention/sm90_backward_fused"); }
DeviceSpec hopper() { return *known_device("sm_90a"); }

HstuAttentionSpec make_spec(DataType dtype, int64_t attn_dim, int64_t hidden_dim) {
  return HstuAttentionSpec(make_params(dtype, attn_dim, hidden_dim));
}

std::vector<KernelConfig> accepted(const HstuAttentionSpec& spec) { return accepted_of(skeleton(), spec, hopper()); }

std::vector<std::string> reasons(const HstuAttentionSpec& spec, const KernelConfig& config, const DeviceSpec& on) {
  return reasons_of(skeleton(), spec, config, on);
}

// Wider sums take more registers, so they are for the other template; so are widths that are not multiples of 16.
TEST(Sm90BackwardFused, ServesSumsOf256ColumnsTogether) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    const HstuAttentionParams& params = spec.params();
    const bool fits = params.attn_dim + params.hidden_dim <= 256 && params.attn_dim % 16 == 0;
    EXPECT_EQ(accepted(spec).empty(), !fits) << spec.to_json();
  }
}

TEST(Sm90BackwardFused, IsDeterministicWithSemaphoresAndPerSequence) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 128, 128);
  std::set<std::string> schedules;
  for (const KernelConfig& config : skeleton().space(spec)) {
    schedules.insert(config.attention().schedule);
    EXPECT_EQ(skeleton().deterministic(config), config.attention().schedule != "persistent");
  }
  EXPECT_EQ(schedules, (std::set<std::string>{"semaphore", "persistent", "per_sequence"}));
  ProblemSize size;
  size.max_seq_len = 16384;
  const auto choice = [&](bool deterministic) {
    return *heuristic_config(spec, Direction::kBackward, hopper(), size, {.deterministic = deterministic});
  };
  EXPECT_EQ(choice(false).skeleton, skeleton().name());
  EXPECT_EQ(choice(false).attention().schedule, "persistent");
  EXPECT_EQ(choice(true).skeleton, skeleton().name());
  EXPECT_EQ(choice(true).attention().schedule, "semaphore");
}

// Where all tiles add to contextual rows, they wait for one another there: those of all sequences alternate.
TEST(Sm90BackwardFused, TilesThatAddToContextualRowsAreListedByPlace) {
  HstuAttentionParams params = make_params(DataType::kBf16, 128, 128);
  const auto by_place = [&] {
    const HstuAttentionSpec spec(params);
    std::set<int64_t> values;
    for (const KernelConfig& config : accepted(spec)) {
      values.insert(constant_of(skeleton(), spec, config, "last_tiles_first"));
    }
    return values;
  };
  EXPECT_EQ(by_place(), std::set<int64_t>{0});
  params.contextual_seq_len = 32;
  EXPECT_EQ(by_place(), std::set<int64_t>{1});
}

TEST(Sm90BackwardFused, NothingForFp32) {
  const HstuAttentionSpec spec = make_spec(DataType::kFp32, 64, 64);
  ASSERT_FALSE(skeleton().space(spec).empty());
  for (const KernelConfig& config : skeleton().space(spec))
    EXPECT_THAT(reasons(spec, config, hopper()), Contains("dtype"));
}

TEST(Sm90BackwardFused, RejectsWhatItCannotDo) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 64, 64);
  const KernelConfig config = accepted(spec).front();
  for (const char* other : {"sm_80", "sm_89"})
    EXPECT_THAT(reasons(spec, config, *known_device(other)), Contains("arch"));
  HstuAttentionParams unaligned = spec.params();
  unaligned.alignment = 8;
  EXPECT_THAT(reasons(HstuAttentionSpec(unaligned), config, hopper()), Contains("alignment"));
  DeviceSpec small = hopper();
  small.shared_memory = 16 * 1024;
  EXPECT_THAT(reasons(spec, config, small), Contains("shared_memory"));
  EXPECT_THAT(reasons(make_spec(DataType::kBf16, 192, 192), config, hopper()), Contains("registers"));

  const auto with = [&](auto change) {
    KernelConfig changed = config;
    change(changed);
    return reasons(spec, changed, hopper());
  };
  for (const int64_t columns : {0, 64, 100})
    EXPECT_THAT(with([&](KernelConfig& c) { c.attention().consumers = 2, c.attention().block_m = columns; }),
                Contains("block_m"))
        << columns;
  for (const int64_t rows : {0, 32, 128})
    EXPECT_THAT(with([&](KernelConfig& c) { c.attention().block_n = rows; }), Contains("block_n")) << rows;
  EXPECT_THAT(with([&](KernelConfig& c) { c.attention().stages = 1; }), Contains("stages"));
  EXPECT_THAT(with([&](KernelConfig& c) { c.attention().schedule = "grid"; }), Contains("schedule"));
  EXPECT_THAT(with([&](KernelConfig& c) { c.attention().ping_pong = true; }), Contains("ping_pong"));
}

// A warpgroup multiplies by its share of the columns of k, which lie in tiles of 64: 48 of them would begin within one
// tile and end in the next.
TEST(Sm90BackwardFused, SharesOfColumnsFitTheTilesOfK) {
  for (const KernelConfig& config : skeleton().space(make_spec(DataType::kBf16, 64, 64))) {
    const auto refuses = [&](int64_t width) {
      const auto names = reasons(make_spec(DataType::kBf16, width, 32), config, hopper());
      return std::find(names.begin(), names.end(), "head_dim") != names.end();
    };
    EXPECT_EQ(refuses(96), config.attention().consumers == 2);
    EXPECT_EQ(refuses(40), true);
    for (const int64_t width : {32, 64, 128}) EXPECT_FALSE(refuses(width)) << width;
  }
}

// Operands, two buffers of dS, which are 64 rows of 16 bits for each column of the tile, and fp32 sums of 64
// rows of dq.
TEST(Sm90BackwardFused, SharedMemoryHoldsTheOperandsTheExchangeAndSums) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    const int64_t tiles = (spec.params().attn_dim + 63) / 64 + (spec.params().hidden_dim + 63) / 64;
    for (const KernelConfig& config : accepted(spec)) {
      const int64_t stationary =
          constant_of(skeleton(), spec, config, "stationary_stages") * config.attention().block_m;
      const int64_t sums = constant_of(skeleton(), spec, config, "smem_accum_tiles");
      const int64_t held = 128 * (tiles * (stationary + config.attention().stages * config.attention().block_n) +
                                  2 * config.attention().block_m) +
                           sums * 64 * spec.params().attn_dim * 4;
      if (config.attention().schedule != "per_sequence") {
        EXPECT_EQ(sums, 0);
      }
      const int64_t bytes = skeleton().launch_plan(spec, config, hopper()).shared_memory;
      EXPECT_EQ(constant_of(skeleton(), spec, config, "shared_bytes"), bytes);
      EXPECT_GT(bytes, held);
      EXPECT_LT(bytes, held + 16 * 1024);
      EXPECT_LE((bytes + 1024) * config.attention().blocks_per_sm, hopper().shared_memory + 1024);
    }
  }
}

// Room that is left beside two buffers of k and v: at 64 columns the sums of 320 rows, from the first rows on that have
// partials of two tiles, at 128 none. Contextual rows have partials of every tile.
TEST(Sm90BackwardFused, DqAccumIsInSharedMemoryWhereThereIsRoom) {
  const auto sums = [&](HstuAttentionParams params, int64_t consumers, int64_t blocks_per_sm) {
    const HstuAttentionSpec spec(params);
    std::vector<int64_t> values;
    for (const KernelConfig& config : accepted(spec)) {
      if (config.attention().schedule != "per_sequence" || config.attention().stages != 2 ||
          config.attention().consumers != consumers)
        continue;
      EXPECT_EQ(config.attention().blocks_per_sm, blocks_per_sm);
      for (const char* name : {"stationary_stages", "first_smem_accum_tile", "smem_accum_tiles"}) {
        values.push_back(constant_of(skeleton(), spec, config, name));
      }
    }
    return values;
  };
  HstuAttentionParams params = make_params(DataType::kBf16, 64, 64);
  EXPECT_EQ(sums(params, 2, 1), (std::vector<int64_t>{2, 2, 5}));
  EXPECT_EQ(sums(params, 1, 2), (std::vector<int64_t>{2, 1, 2}));
  params.contextual_seq_len = 8;
  EXPECT_EQ(sums(params, 2, 1), (std::vector<int64_t>{2, 0, 5}));
  EXPECT_EQ(sums(make_params(DataType::kBf16, 128, 128), 2, 1), (std::vector<int64_t>{2, 2, 0}));
}

TEST(Sm90BackwardFused, RegistersAndThreadsFitTheDevice) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    for (const KernelConfig& config : accepted(spec)) {
      const sm90::backward::FusedResources resources(spec, config.attention());
      EXPECT_EQ(skeleton().launch_plan(spec, config, hopper()).threads, resources.threads);
      EXPECT_LE(config.attention().blocks_per_sm * 128 *
                    (config.attention().consumers * resources.consumer_registers + resources.producer_registers),
                hopper().registers);
      EXPECT_LE(resources.registers_needed, resources.consumer_registers);
    }
  }
}

constexpr int64_t kSequences = 5;

// `rows` of q, in kSequences sequences.
int64_t product_of(const Signature& signature, const std::vector<GridFactor>& factors, int64_t rows) {
  int64_t result = 1;
  for (const GridFactor& factor : factors) {
    int64_t size = factor.constant;
    if (factor.source != Source::kConstant) {
      EXPECT_EQ(factor.source, Source::kSize);
      EXPECT_EQ(factor.dimension, 0);
      const std::string& tensor = signature[static_cast<size_t>(factor.argument)].name;
      EXPECT_TRUE(tensor == "q" || tensor == "seq_offsets") << tensor;
      size = tensor == "q" ? rows : kSequences + 1;
    }
    result *= (size + factor.bias + factor.divisor - 1) / factor.divisor;
  }
  return result;
}

// One fp32 dq, its rows rounded up to groups of 8. With atomics it is zero at first, and a kernel that has a CTA for
// each group follows; otherwise it is not, and counters are: one for the list and, with "semaphore", for each head as
// many semaphores as there may be Q tiles.
TEST(Sm90BackwardFused, TheWorkspaceIsOneDq) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 64, 128);
  const Signature signature = spec.signature(Direction::kBackward);
  for (const KernelConfig& config : accepted(spec)) {
    const LaunchPlan plan = skeleton().launch_plan(spec, config, hopper());
    const std::vector<WorkspaceRegion>& regions = plan.workspace.regions;
    const bool semaphore = config.attention().schedule == "semaphore",
               per_sequence = config.attention().schedule == "per_sequence";
    ASSERT_EQ(regions.size(), semaphore ? 4u : 2u);
    EXPECT_TRUE(regions[0].cleared) << "the counter of what CTAs have taken";
    ASSERT_EQ(plan.following.size(), semaphore || per_sequence ? 0u : 1u);
    EXPECT_EQ(regions.back().cleared, !semaphore && !per_sequence);
    for (const int64_t rows : {1, 8, 9, 1000}) {
      const int64_t rounded = (rows + 7) / 8 * 8;
      EXPECT_EQ(product_of(signature, regions.back().bytes, rows), rounded * 4 * 64 * 4);
      EXPECT_EQ(product_of(signature, regions[0].bytes, rows), 8);
      if (!semaphore && !per_sequence) {
        EXPECT_EQ(product_of(signature, plan.following[0].grid, rows), rounded / 8);
        EXPECT_EQ(plan.following[0].function, "convert_dq");
      }
      if (semaphore) {
        const int64_t semaphores = (product_of(signature, regions[1].bytes, rows) +  //
                                    product_of(signature, regions[2].bytes, rows)) /
                                   (4 * 4);
        EXPECT_GE(semaphores, rows / 64 + kSequences) << "of each head";
        EXPECT_LE(semaphores, rows / 64 + kSequences + 2);
      }
    }
    if (semaphore) {
      EXPECT_TRUE(regions[1].cleared && regions[2].cleared);
    }
    EXPECT_EQ(plan.persistent_blocks, hopper().sm_count * config.attention().blocks_per_sm);
  }
}

TEST(Sm90BackwardFused, KernelNamesTellConfigsApart) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    std::set<std::string> names;
    size_t configs = 0;
    for (const KernelConfig& config : accepted(spec)) {
      for (const bool lanes : {false, true}) {
        for (const char* activation : {"mufu", "accurate"}) {
          KernelConfig changed = config;
          changed.sanitizer.lanes_arrive = lanes;
          changed.attention().activation = activation;
          const LaunchPlan plan = skeleton().launch_plan(spec, changed, hopper());
          names.insert(plan.kernel_name);
          configs += 1 + plan.following.size();
          for (const FollowingKernel& following : plan.following) names.insert(following.kernel_name);
        }
      }
    }
    EXPECT_EQ(names.size(), configs) << spec.to_json();
  }
}

TEST(Sm90BackwardFused, EstimatesGrowWithTheProblem) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    for (const KernelConfig& config : accepted(spec)) {
      const double small = skeleton().estimate(spec, config, hopper(), {256, 64, 0.6});
      EXPECT_GT(small, 0);
      EXPECT_GT(skeleton().estimate(spec, config, hopper(), {2048, 64, 0.6}), small);
    }
  }
}

// Short sequences are one CTA's, of long ones there are too few for that: as measured (docs/performance.md). Of 128
// columns and 1024 rows, "per_sequence" and "semaphore" are within 4 %.
TEST(Sm90BackwardFused, IsTheChoiceOfHopper) {
  ProblemSize size;
  const auto choice = [&](int64_t width, int64_t length) {
    size.max_seq_len = length;
    const HstuAttentionSpec spec = make_spec(DataType::kBf16, width, width);
    const KernelConfig config = *heuristic_config(spec, Direction::kBackward, hopper(), size);
    return config.skeleton == skeleton().name() ? config.attention().schedule : "two passes";
  };
  for (const int64_t width : {64, 128}) EXPECT_EQ(choice(width, 256), "per_sequence") << width;
  // Where sequences are few, one CTA for each leaves others idle (docs/journal.md, entries 98 and 112).
  EXPECT_EQ(choice(64, 1024), "persistent");
  EXPECT_EQ(choice(128, 1024), "semaphore");
  for (const int64_t length : {4096, 8192, 16384}) EXPECT_EQ(choice(128, length), "persistent") << length;
}

// Whatever else there is: of nine such keys it was the fastest in one, by 4 %.
TEST(Sm90BackwardFused, OneCtaForASequenceIsNoChoiceForLongOnes) {
  for (const int64_t width : {32, 64, 128, 256}) {
    for (const ProblemSize& size : {ProblemSize{4096, 256, 0.6}, ProblemSize{16384, 4096, 0.02}, {65536, 512, 0.01}}) {
      const HstuAttentionSpec spec = make_spec(DataType::kBf16, width, width);
      const KernelConfig config = *heuristic_config(spec, Direction::kBackward, hopper(), size);
      EXPECT_NE(config.attention().schedule, "per_sequence") << width << " " << size.max_seq_len;
    }
  }
}

class Sm90BackwardFusedCompiled : public CompiledKernels {};

TEST_F(Sm90BackwardFusedCompiled, TwoStagesOfEveryShape) {
  for (const int64_t width : {64, 128}) {
    const HstuAttentionSpec spec = make_spec(DataType::kBf16, width, width);
    for (const KernelConfig& config : accepted(spec)) {
      if (config.attention().stages == 2) expect_fits(spec, Direction::kBackward, config, hopper());
    }
  }
}

TEST_F(Sm90BackwardFusedCompiled, ListsOfOtherMasks) {
  HstuAttentionParams mixed = make_params(DataType::kFp16, 128, 128);
  mixed.max_attn_len = 256;
  mixed.contextual_seq_len = 32;
  mixed.num_targets = true;
  HstuAttentionParams groups = make_params(DataType::kBf16, 128, 64);
  groups.num_targets = true;
  groups.target_group_size = 4;
  for (const HstuAttentionParams& params : {mixed, groups}) {
    const HstuAttentionSpec spec(params);
    for (const KernelConfig& config : accepted(spec)) {
      if (config.attention().stages == 3) expect_fits(spec, Direction::kBackward, config, hopper());
    }
  }
}

}  // namespace
}  // namespace hstujit
