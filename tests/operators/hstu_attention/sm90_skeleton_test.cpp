// Host side of templates/attention/sm90_forward/kernel.cuh: what Hopper gets a config for, what is refused and why, and
// figures that add up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "templates/attention/sm90_forward/resources.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

using testing::Contains;
using testing::IsEmpty;

const Skeleton& skeleton() { return **find_skeleton("attention/sm90_forward"); }
DeviceSpec hopper() { return *known_device("sm_90a"); }

HstuAttentionSpec make_spec(DataType dtype, int64_t attn_dim, int64_t hidden_dim, bool num_targets = false) {
  HstuAttentionParams params = make_params(dtype, attn_dim, hidden_dim);
  params.num_targets = num_targets;
  return HstuAttentionSpec(params);
}

std::vector<KernelConfig> accepted(const HstuAttentionSpec& spec) { return accepted_of(skeleton(), spec, hopper()); }

std::vector<std::string> reasons(const HstuAttentionSpec& spec, const KernelConfig& config, const DeviceSpec& on) {
  return reasons_of(skeleton(), spec, config, on);
}

int64_t constant(const HstuAttentionSpec& spec, const KernelConfig& config, std::string_view name) {
  return constant_of(skeleton(), spec, config, name);
}

TEST(Sm90Skeleton, EveryHeadDimensionHasAConfig) {
  for (const HstuAttentionSpec& spec : matrix_specs()) EXPECT_FALSE(accepted(spec).empty()) << spec.to_json();
}

TEST(Sm90Skeleton, NothingForFp32) {
  const HstuAttentionSpec spec = make_spec(DataType::kFp32, 64, 64);
  ASSERT_FALSE(skeleton().space(spec).empty());
  for (const KernelConfig& config : skeleton().space(spec))
    EXPECT_THAT(reasons(spec, config, hopper()), Contains("dtype"));
}

TEST(Sm90Skeleton, RejectedConfigsSayWhyInFigures) {
  std::set<std::string> seen;
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    for (KernelConfig config : skeleton().space(spec)) {
      for (const int64_t stages : {config.attention().stages, int64_t{40}}) {
        config.attention().stages = stages;
        for (const Rejection& rejection : skeleton().reject(spec, config, hopper())) {
          seen.insert(rejection.reason);
          EXPECT_GT(rejection.detail.size(), 20u);
          EXPECT_EQ(rejection.detail.find('\n'), std::string::npos);
          EXPECT_TRUE(std::regex_search(rejection.detail, std::regex("[0-9]+.*[0-9]+"))) << rejection.detail;
        }
      }
    }
  }
  EXPECT_THAT(seen, testing::IsSupersetOf({"shared_memory", "registers"}));
}

TEST(Sm90Skeleton, RejectsWhatItCannotDo) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 64, 64);
  const KernelConfig config = accepted(spec).front();
  EXPECT_THAT(reasons(spec, config, hopper()), IsEmpty());
  for (const char* other : {"sm_80", "sm_89"})
    EXPECT_THAT(reasons(spec, config, *known_device(other)), Contains("arch"));

  HstuAttentionParams unaligned = spec.params();
  unaligned.alignment = 8;
  EXPECT_THAT(reasons(HstuAttentionSpec(unaligned), config, hopper()), Contains("alignment"));

  DeviceSpec small = hopper();
  small.shared_memory = 16 * 1024;
  EXPECT_THAT(reasons(spec, config, small), Contains("shared_memory"));
  DeviceSpec narrow = hopper();
  narrow.max_threads = 128;
  EXPECT_THAT(reasons(spec, config, narrow), Contains("threads"));
}

// A CTA of the persistent schedule sorts the sequences where k will be.
TEST(Sm90Skeleton, TheStagesOfKHaveRoomToSortSequences) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 64, 128);
  const auto with_stages = [](int64_t stages) {
    AttentionConfig config;
    config.block_m = 192;
    config.block_n = 16;
    config.stages = stages;
    config.consumers = 3;
    config.schedule = "persistent";
    config.ping_pong = true;
    return KernelConfig{"attention/sm90_forward", config};
  };
  // 16 warps with 64 counters of two bytes each, and a byte for each of 2048 sequences.
  const std::vector<Rejection> rejections = skeleton().reject(spec, with_stages(1), hopper());
  ASSERT_EQ(rejections.size(), 1u);
  EXPECT_EQ(rejections[0].detail, "the stages of k have 2048 bytes, and to sort 2048 sequences takes 4096");
  EXPECT_THAT(reasons(spec, with_stages(2), hopper()), IsEmpty());
}

// Records and HSTUJIT_OVERRIDE may hold anything.
TEST(Sm90Skeleton, RejectsShapesThatItDoesNotHave) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 64, 64);
  KernelConfig config = accepted(spec).front();
  const auto with = [&](auto change) {
    KernelConfig changed = config;
    change(changed);
    return reasons(spec, changed, hopper());
  };
  for (const int64_t rows : {0, 64, 100, 192}) {
    EXPECT_THAT(with([&](KernelConfig& c) { c.attention().consumers = 2, c.attention().block_m = rows; }),
                Contains("block_m"))
        << rows;
  }
  for (const int64_t consumers : {0, 4}) {
    EXPECT_THAT(
        with([&](KernelConfig& c) { c.attention().consumers = consumers, c.attention().block_m = 64 * consumers; }),
        Contains("block_m"));
  }
  for (const int64_t columns : {0, 24, 272}) {
    EXPECT_THAT(with([&](KernelConfig& c) { c.attention().block_n = columns; }), Contains("block_n")) << columns;
  }
  EXPECT_THAT(with([&](KernelConfig& c) {
                c.attention().consumers = 1, c.attention().block_m = 64, c.attention().ping_pong = true;
              }),
              Contains("ping_pong"));
}

// Columns of a tile that one consumer works on alone, whose sums fit where its k and v were.
TEST(Sm90Skeleton, ColumnsAreSharedOutInGridsOfOneConsumer) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 128, 128);
  size_t split = 0;
  for (const KernelConfig& config : accepted(spec)) {
    const LaunchPlan plan = skeleton().launch_plan(spec, config, hopper());
    EXPECT_EQ(constant(spec, config, "split"), config.attention().split_kv);
    EXPECT_EQ(plan.cluster.max, config.attention().split_kv ? 16 : 1);
    if (!config.attention().split_kv) continue;
    ++split;
    EXPECT_EQ(spec.signature(Direction::kForward)[static_cast<size_t>(plan.cluster.argument)].name, "max_seq_len");
    EXPECT_EQ(plan.cluster.min, 2 * config.attention().block_n);
    KernelConfig changed = config;
    changed.attention().schedule = "persistent";
    EXPECT_THAT(reasons(spec, changed, hopper()), Contains("split_kv"));
    changed = config;
    changed.attention().consumers = 2;
    changed.attention().block_m = 128;
    EXPECT_THAT(reasons(spec, changed, hopper()), Contains("split_kv"));
  }
  EXPECT_GT(split, 0u);
  KernelConfig config;
  config.skeleton = skeleton().name();
  config.attention().block_m = config.attention().block_n = 64;
  config.attention().stages = 2;
  config.attention().consumers = 1;
  config.attention().split_kv = true;
  EXPECT_THAT(reasons(spec, config, hopper()), IsEmpty());
  config.attention().block_n = 16;
  EXPECT_THAT(reasons(spec, config, hopper()), Contains("split_kv")) << "34 KiB of sums, 16 of k and v";
}

// Operands are tiles of 64 columns in rows of 128 bytes; barriers and the schedule are what is left.
TEST(Sm90Skeleton, SharedMemoryHoldsTheOperands) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    const int64_t qk_tiles = (spec.params().attn_dim + 63) / 64, pv_tiles = (spec.params().hidden_dim + 63) / 64;
    for (const KernelConfig& config : accepted(spec)) {
      const int64_t queries = constant(spec, config, "query_stages");
      const int64_t operands = 128 * (queries * qk_tiles * config.attention().block_m +
                                      config.attention().stages * (qk_tiles + pv_tiles) * config.attention().block_n);
      const int64_t bytes = skeleton().launch_plan(spec, config, hopper()).shared_memory;
      EXPECT_EQ(constant(spec, config, "shared_bytes"), bytes);
      EXPECT_GT(bytes, operands);
      EXPECT_LT(bytes, operands + 16 * 1024);
      EXPECT_LE(bytes, hopper().shared_memory);
      // 1 KiB of a multiprocessor is reserved for each block, and a block's limit leaves out its own.
      EXPECT_LE((bytes + 1024) * config.attention().blocks_per_sm, hopper().shared_memory + 1024);
    }
  }
}

TEST(Sm90Skeleton, RegistersAndThreadsFitTheDevice) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    for (const KernelConfig& config : accepted(spec)) {
      const LaunchPlan plan = skeleton().launch_plan(spec, config, hopper());
      EXPECT_EQ(constant(spec, config, "threads"), plan.threads);
      EXPECT_LE(plan.threads, 1024);
      EXPECT_LE(plan.threads * config.attention().blocks_per_sm, hopper().max_threads);
      EXPECT_EQ(config.attention().block_m, 64 * config.attention().consumers);

      const sm90::Resources resources(spec, config.attention());
      const int64_t consumers = 128 * config.attention().consumers, producers = plan.threads - consumers;
      // Without setmaxnreg the producer has as many as the others.
      const int64_t of_producer =
          resources.producer_registers > 0 ? resources.producer_registers : resources.consumer_registers;
      EXPECT_LE(config.attention().blocks_per_sm * (consumers * resources.consumer_registers + producers * of_producer),
                hopper().registers);
      EXPECT_LE(resources.registers_needed, resources.consumer_registers);
      EXPECT_LE(resources.consumer_registers, 255);
      // setmaxnreg takes multiples of 8.
      EXPECT_EQ(resources.consumer_registers % 8, 0);
      EXPECT_EQ(resources.producer_registers % 8, 0);
    }
  }
}

// The members that templates/attention/sm90_forward/kernel.cuh read.
TEST(Sm90Skeleton, SlotsAreThoseOfTheTemplate) {
  for (const auto& [targets, attn_dim] : {std::pair{false, 64}, {true, 64}, {true, 128}}) {
    const HstuAttentionSpec spec = make_spec(DataType::kBf16, attn_dim, 128, targets);
    const Signature signature = spec.signature(Direction::kForward);
    for (const KernelConfig& config : accepted(spec)) {
      const LaunchPlan plan = skeleton().launch_plan(spec, config, hopper());
      std::set<std::string> names;
      for (const ParamSlot& slot : plan.slots) {
        EXPECT_TRUE(names.insert(slot.name).second) << slot.name;
        ASSERT_GE(slot.argument, 0) << slot.name;
        ASSERT_LT(slot.argument, static_cast<int>(signature.size())) << slot.name;
        EXPECT_EQ(slot.kind == ParamSlot::Kind::kPointer, !slot.type.empty()) << slot.name;
        if (slot.kind != ParamSlot::Kind::kTensorMap) continue;
        const std::string& tensor = signature[static_cast<size_t>(slot.argument)].name;
        ASSERT_EQ(slot.map.axes.size(), 3u);
        EXPECT_EQ(slot.map.axes[0].box, 64);
        const int box_rows = slot.map.axes[2].box;
        if (slot.name == tensor + "_tail_map" || slot.name == "out_map") {
          EXPECT_EQ(box_rows, 16);  // kTailBoxRows
        } else {
          EXPECT_EQ(slot.name, tensor + "_map");
          EXPECT_EQ(box_rows, tensor == "q" ? config.attention().block_m : config.attention().block_n);
        }
        EXPECT_LE(box_rows, 256) << "the driver's limit";
      }
      std::set<std::string> needed = {
          "q_map",        "k_map",       "v_map", "q_tail_map",     "k_tail_map",      "v_tail_map",     "out",
          "total_rows",   "seq_offsets", "batch", "out_row_stride", "out_head_stride", "max_query_rows", "alpha",
          "inverse_scale"};
      if (targets) needed.insert("num_targets");
      if (attn_dim >= 128) needed.insert("out_map");  // outputs are staged where q was, if they fit
      if (config.attention().pack_sequences) needed.insert({"v", "v_row_stride", "v_head_stride"});
      EXPECT_EQ(names, needed);
    }
  }
}

TEST(Sm90Skeleton, PersistentGridFillsTheDeviceOnce) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 128, 128);
  std::set<std::string> schedules;
  for (const KernelConfig& config : accepted(spec)) {
    schedules.insert(config.attention().schedule);
    const LaunchPlan plan = skeleton().launch_plan(spec, config, hopper());
    EXPECT_EQ(plan.persistent_blocks,
              config.attention().schedule == "persistent" ? hopper().sm_count * config.attention().blocks_per_sm : 0);
    EXPECT_EQ(plan.grid.size(), 3u);
  }
  EXPECT_EQ(schedules, (std::set<std::string>{"grid", "persistent"}));
}

// Fields that the space leaves at their defaults may be set by hand, and are said, too.
TEST(Sm90Skeleton, KernelNamesTellConfigsApart) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    std::set<std::string> names;
    size_t configs = 0;
    for (const KernelConfig& config : accepted(spec)) {
      for (const bool lanes : {false, true}) {
        for (const char* activation : {"mufu", "accurate"}) {
          KernelConfig changed = config;
          changed.sanitizer.lanes_arrive = lanes;
          changed.attention().activation = activation;
          names.insert(skeleton().launch_plan(spec, changed, hopper()).kernel_name);
          ++configs;
        }
      }
    }
    EXPECT_EQ(names.size(), configs) << spec.to_json();
    for (const std::string& name : names) EXPECT_TRUE(std::regex_match(name, std::regex("[a-z0-9_]+"))) << name;
  }
}

TEST(Sm90Skeleton, EstimatesGrowWithTheProblem) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    for (const KernelConfig& config : accepted(spec)) {
      const double small = skeleton().estimate(spec, config, hopper(), {256, 64, 0.6});
      EXPECT_GT(small, 0);
      EXPECT_GT(skeleton().estimate(spec, config, hopper(), {2048, 64, 0.6}), small);
    }
  }
}

KernelConfig first_choice(const HstuAttentionSpec& spec, int64_t max_seq_len) {
  ProblemSize size;
  size.max_seq_len = max_seq_len;
  const std::vector<KernelConfig> configs = accepted(spec);
  return *std::min_element(configs.begin(), configs.end(), [&](const auto& a, const auto& b) {
    return skeleton().estimate(spec, a, hopper(), size) < skeleton().estimate(spec, b, hopper(), size);
  });
}

// Entry 20: of a batch with one long sequence among short ones, a grid is nearly all blocks without rows.
TEST(Sm90Skeleton, TheFirstChoiceForOneMaskOfEqualTilesIsNoGrid) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 128, 128);
  for (int64_t length = 256; length <= 65536; length *= 2) {
    EXPECT_EQ(first_choice(spec, length).attention().schedule, "persistent") << length;
    EXPECT_FALSE(first_choice(spec, length).attention().split_kv) << length;
  }
}

// docs/journal.md, entry 22: a launch takes 9 us where its blocks have next to nothing to do, adding up included.
TEST(Sm90Skeleton, TheFirstChoiceForFewTilesSharesThemOut) {
  const auto estimate_of = [](int64_t rows, int64_t batch, bool split) {
    const HstuAttentionSpec spec = make_spec(DataType::kBf16, 128, 128);
    double best = std::numeric_limits<double>::infinity();
    for (const KernelConfig& config : accepted(spec)) {
      if (config.attention().split_kv != split) continue;
      best = std::min(best, skeleton().estimate(spec, config, hopper(), {rows, batch, 1, true}));
    }
    return best;
  };
  EXPECT_NEAR(estimate_of(1024, 1, false), 0.019, 0.003) << "as timed";
  EXPECT_LT(estimate_of(1024, 1, true), 0.75 * estimate_of(1024, 1, false));
  EXPECT_LT(estimate_of(512, 4, true), estimate_of(512, 4, false));
  // There is room for no cluster, and nothing to split.
  EXPECT_GE(estimate_of(4096, 1, true), estimate_of(4096, 1, false));
  EXPECT_GE(estimate_of(64, 1, true), estimate_of(64, 1, false));
}

// Entry 21: the families of configs that were timed within 6 % of the best. What was chosen before was 10 to 30 %
// slower in the keys with a star.
TEST(Sm90Skeleton, TheFirstChoiceIsOfAFamilyThatWasTimedFast) {
  struct Timed {
    const char* key;
    HstuAttentionParams mask;
    int64_t attn_dim, max_seq_len;
    const char* family;
  };
  const std::vector<Timed> keys = {
      {"rank-256", {}, 64, 256, "64x64 persistent"},
      {"rank-1k at 256 *", {.num_targets = true}, 128, 256, "64x64 persistent"},
      {"rank-1k", {.num_targets = true}, 128, 1024, "64x64 persistent"},
      {"mid-2k", {}, 64, 2048, "64x64 persistent"},
      {"seq-4k", {}, 128, 4096, "192x64 persistent"},
      {"d64 at 4096", {}, 64, 4096, "192x96 persistent"},
      {"long-16k *", {}, 128, 16384, "192x64 persistent"},
      {"context-4k *", {.contextual_seq_len = 32}, 128, 4096, "192x64 grid"},
      {"window-full-1k *", {.max_attn_len = 256, .min_full_attn_seq_len = 64}, 128, 1024, "192x64 persistent"},
      {"window-full-4k *", {.max_attn_len = 256, .min_full_attn_seq_len = 64}, 128, 4096, "192x64 grid"},
      {"semi-local-4k *", {.sla_k1 = 256, .sla_k2 = 64}, 128, 4096, "192x64 persistent"},
      {"win-16k-mix", {.num_targets = true, .max_attn_len = 2048, .contextual_seq_len = 32}, 128, 16384, "192x64 grid"},
  };
  for (const Timed& timed : keys) {
    HstuAttentionParams params = timed.mask;
    params.heads = 4;
    params.attn_dim = params.hidden_dim = timed.attn_dim;
    const KernelConfig config = first_choice(HstuAttentionSpec(params), timed.max_seq_len);
    EXPECT_EQ(std::to_string(config.attention().block_m) + "x" + std::to_string(config.attention().block_n) + " " +
                  config.attention().schedule,
              timed.family)
        << timed.key;
  }
}

// Among blocks that walk lists of their own, a few long tiles weigh more the fewer tiles there are.
TEST(Sm90Skeleton, FewLongTilesBalanceWorseThanMany) {
  HstuAttentionParams params = make_spec(DataType::kBf16, 128, 128).params();
  params.max_attn_len = 256;
  HstuAttentionParams long_tiles = params;
  long_tiles.contextual_seq_len = 32;
  KernelConfig list = accepted(HstuAttentionSpec(params)).front();
  ASSERT_EQ(list.attention().schedule, "persistent");
  KernelConfig grid = list;
  grid.attention().schedule = "grid";
  const auto list_over_grid = [&](const HstuAttentionParams& mask, int64_t batch) {
    const HstuAttentionSpec spec(mask);
    const ProblemSize size{4096, batch, 0.6};
    return skeleton().estimate(spec, list, hopper(), size) / skeleton().estimate(spec, grid, hopper(), size);
  };
  EXPECT_GT(list_over_grid(long_tiles, 64), 1.1 * list_over_grid(params, 64));
  EXPECT_GT(list_over_grid(long_tiles, 16), 1.05 * list_over_grid(long_tiles, 64));
}

}  // namespace
}  // namespace hstujit
