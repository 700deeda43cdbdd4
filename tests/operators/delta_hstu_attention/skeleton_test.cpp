// The templates of hstu_attention as those of delta_hstu_attention: what differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "compiler/plan/search_space.h"
#include "compiler/spec/operators/delta_hstu_attention/spec.h"
#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

DeviceSpec hopper() { return *known_device("sm_90a"); }
const Skeleton& skeleton(const char* name) { return **find_skeleton(name); }

DeltaHstuAttentionParams params_of(int64_t attn_dim, int64_t hidden_dim, DataType dtype, bool jagged) {
  DeltaHstuAttentionParams params;
  params.heads = 4;
  params.attn_dim = attn_dim;
  params.hidden_dim = hidden_dim;
  params.dtype = dtype;
  params.jagged_queries = jagged;
  return params;
}

std::vector<KernelConfig> configs_for(const OpSpec& spec, const DeviceSpec& device, const std::string& skeleton = "") {
  std::vector<KernelConfig> configs;
  for (const Candidate& candidate : search_space(spec, Direction::kForward, device, {}).candidates) {
    if (skeleton.empty() || candidate.config.skeleton == skeleton) configs.push_back(candidate.config);
  }
  return configs;
}

std::map<std::string, const ParamSlot*> slots_of(const LaunchPlan& plan) {
  std::map<std::string, const ParamSlot*> slots;
  for (const ParamSlot& slot : plan.slots) slots[slot.name] = &slot;
  return slots;
}

std::string argument_of(const OpSpec& spec, int index) {
  return spec.signature(Direction::kForward)[static_cast<size_t>(index)].name;
}

TEST(DeltaSkeletons, EveryProblemHasAConfig) {
  for (const bool jagged : {false, true}) {
    for (const DataType dtype : {DataType::kBf16, DataType::kFp16, DataType::kFp32}) {
      for (const auto& [attn_dim, hidden_dim] :
           {std::pair{8, 8}, {40, 40}, {64, 128}, {128, 64}, {192, 192}, {256, 8}, {8, 256}, {256, 256}}) {
        const DeltaHstuAttentionSpec spec(params_of(attn_dim, hidden_dim, dtype, jagged));
        for (const char* device : {"sm_80", "sm_89", "sm_90a"}) {
          const auto configs = configs_for(spec, *known_device(device));
          ASSERT_FALSE(configs.empty()) << spec.to_json() << device;
          // The first choice on Hopper is its own template wherever that can multiply the data.
          if (device == std::string("sm_90a") && dtype != DataType::kFp32) {
            EXPECT_EQ(configs.front().skeleton, "attention/sm90_forward") << spec.to_json();
          }
        }
      }
    }
  }
}

TEST(DeltaSkeletons, RowsOfQAreCountedByArgumentsOfTheirOwn) {
  for (const bool jagged : {false, true}) {
    const DeltaHstuAttentionSpec spec(params_of(64, 64, DataType::kBf16, jagged));
    for (const char* name : {"attention/sm90_forward", "attention/sm80_forward"}) {
      for (const KernelConfig& config : configs_for(spec, hopper(), name)) {
        const LaunchPlan plan = skeleton(name).launch_plan(spec, config, hopper());
        const auto slots = slots_of(plan);
        EXPECT_EQ(argument_of(spec, slots.at("total_rows")->argument), "k");
        EXPECT_EQ(argument_of(spec, slots.at("total_query_rows")->argument), "q");
        EXPECT_EQ(argument_of(spec, slots.at("max_query_rows")->argument), "max_delta_len");
        EXPECT_EQ(slots.contains("seq_offsets_q"), jagged);
        ASSERT_EQ(plan.grid.size(), 3u);
        EXPECT_EQ(argument_of(spec, plan.grid[0].argument), "max_delta_len");
        EXPECT_EQ(plan.grid[0].divisor, config.attention().block_m);
        EXPECT_THAT(plan.kernel_name,
                    HasSubstr(jagged ? "delta_hstu_attention_jagged_forward" : "delta_hstu_attention_forward"));
      }
    }
  }
}

// Hopper's templates have tiles of q that begin as those of k.
TEST(DeltaSkeletons, BackwardHasTilesOfAllRows) {
  for (const bool jagged : {false, true}) {
    for (const DataType dtype : {DataType::kBf16, DataType::kFp32}) {
      for (const auto& [attn_dim, hidden_dim] : {std::pair{8, 8}, {64, 128}, {256, 8}, {256, 256}}) {
        const DeltaHstuAttentionSpec spec(params_of(attn_dim, hidden_dim, dtype, jagged));
        for (const char* device : {"sm_80", "sm_89", "sm_90a"}) {
          const auto candidates = search_space(spec, Direction::kBackward, *known_device(device), {}).candidates;
          ASSERT_FALSE(candidates.empty()) << spec.to_json() << device;
          for (const Candidate& candidate : candidates) {
            const KernelConfig& config = candidate.config;
            EXPECT_EQ(config.skeleton, "attention/sm80_backward");
            EXPECT_EQ(config.attention().schedule, "grid");
            const LaunchPlan plan = skeleton("attention/sm80_backward").launch_plan(spec, config, hopper());
            const Signature signature = spec.signature(Direction::kBackward);
            const auto name_of = [&](int argument) { return signature[static_cast<size_t>(argument)].name; };
            const auto slots = slots_of(plan);
            EXPECT_EQ(name_of(slots.at("max_query_rows")->argument), "max_delta_len");
            EXPECT_EQ(name_of(slots.at("max_seq_len")->argument), "max_seq_len");
            EXPECT_EQ(name_of(plan.grid[0].argument), "max_seq_len");
          }
        }
      }
    }
  }
}

TEST(DeltaSkeletons, BackwardRefusalsAreNamed) {
  const DeltaHstuAttentionSpec spec(params_of(64, 64, DataType::kBf16, false));
  const HstuAttentionSpec all(params_of(64, 64, DataType::kBf16, false));
  for (const char* name : {"attention/sm90_backward_twopass", "attention/sm90_backward_fused"}) {
    for (const KernelConfig& config : skeleton(name).space(all)) {
      std::vector<std::string> reasons;
      for (const Rejection& rejection : skeleton(name).reject(spec, config, hopper()))
        reasons.push_back(rejection.reason);
      EXPECT_THAT(reasons, Contains("query_rows")) << name;
    }
  }
  const Skeleton& sm80 = skeleton("attention/sm80_backward");
  for (const KernelConfig& config : sm80.space(spec)) {
    if (config.attention().schedule != "per_sequence") continue;
    std::vector<std::string> reasons;
    for (const Rejection& rejection : sm80.reject(spec, config, hopper())) reasons.push_back(rejection.reason);
    EXPECT_THAT(reasons, Contains("schedule"));
  }
}

TEST(DeltaSkeletons, FewerRowsOfQTakeLessTimeBackward) {
  const DeltaHstuAttentionSpec spec(params_of(64, 64, DataType::kBf16, true));
  double last = 0;
  for (const int64_t rows : {1, 64, 512, 4096}) {
    ProblemSize size;
    size.max_seq_len = 4096;
    size.other_rows["Lq"] = rows;
    const Candidate best = search_space(spec, Direction::kBackward, hopper(), size).candidates.front();
    EXPECT_TRUE(std::isfinite(best.estimate_ms)) << rows;
    EXPECT_GE(best.estimate_ms, last) << rows;
    last = best.estimate_ms;
  }
}

TEST(DeltaSkeletons, TheSourceSaysWhichRowsQHas) {
  const auto constant = [](const OpSpec& spec, const char* skeleton_name, std::string_view name) {
    const std::vector<KernelConfig> configs = configs_for(spec, hopper(), skeleton_name);
    int64_t found = -1;
    if (configs.empty()) return found;
    for (const auto& [key, value] : skeleton(skeleton_name).constants(spec, configs.front())) {
      if (key == name) found = value;
    }
    return found;
  };
  const DeltaHstuAttentionSpec dense(params_of(64, 64, DataType::kBf16, false));
  const DeltaHstuAttentionSpec jagged(params_of(64, 64, DataType::kBf16, true));
  const HstuAttentionSpec all(params_of(64, 64, DataType::kBf16, false));
  for (const char* name : {"attention/sm90_forward", "attention/sm80_forward"}) {
    EXPECT_EQ(constant(dense, name, "delta"), 1);
    EXPECT_EQ(constant(dense, name, "jagged_queries"), 0);
    EXPECT_EQ(constant(jagged, name, "jagged_queries"), 1);
    EXPECT_EQ(constant(all, name, "delta"), 0);
  }
}

TEST(DeltaSkeletons, OneConsumerSplitsColumnsOverItsCluster) {
  const DeltaHstuAttentionSpec spec(params_of(128, 128, DataType::kBf16, false));
  const Skeleton& sm90 = skeleton("attention/sm90_forward");
  bool alone = false, shared = false;
  for (const KernelConfig& config : configs_for(spec, hopper(), "attention/sm90_forward")) {
    const LaunchPlan plan = sm90.launch_plan(spec, config, hopper());
    if (config.attention().consumers > 1) {
      EXPECT_EQ(plan.cluster.max, 1);
      alone = true;
      continue;
    }
    shared = true;
    EXPECT_EQ(plan.cluster.max, 16);
    EXPECT_EQ(argument_of(spec, plan.cluster.argument), "max_seq_len");
    EXPECT_GE(plan.cluster.min, config.attention().block_n);
  }
  EXPECT_TRUE(alone && shared);
}

// Sums of 64 rows take the place of k and v; two consumers' would not.
TEST(DeltaSkeletons, PartialsFitWhereKeysAndValuesWere) {
  for (const auto& [attn_dim, hidden_dim] : {std::pair{8, 256}, {8, 8}, {128, 128}, {256, 256}}) {
    const DeltaHstuAttentionSpec spec(params_of(attn_dim, hidden_dim, DataType::kBf16, false));
    for (const KernelConfig& config : configs_for(spec, hopper(), "attention/sm90_forward")) {
      const LaunchPlan plan = skeleton("attention/sm90_forward").launch_plan(spec, config, hopper());
      if (plan.cluster.max == 1) continue;
      const int64_t tiles = (attn_dim + 63) / 64 + (hidden_dim + 63) / 64;
      EXPECT_LE(config.attention().block_m * (hidden_dim + 8) * 4,
                config.attention().stages * tiles * config.attention().block_n * 128);
    }
  }
}

// docs/journal.md, entry 22: of one sequence of 16384 rows a tile that is not split takes 134 us, and 21 us with a
// cluster.
TEST(DeltaSkeletons, TheFirstChoiceSharesItsTilesOut) {
  for (const int64_t length : {1024, 4096, 16384}) {
    const DeltaHstuAttentionSpec spec(params_of(128, 128, DataType::kBf16, false));
    ProblemSize size;
    size.max_seq_len = length;
    const auto candidates = search_space(spec, Direction::kForward, hopper(), size).candidates;
    EXPECT_EQ(candidates.front().config.attention().consumers, 1) << length;
    size.batch = 1;
    const auto estimate = [&](int64_t consumers) {
      double best = std::numeric_limits<double>::infinity();
      for (const KernelConfig& config : configs_for(spec, hopper(), "attention/sm90_forward")) {
        if (config.attention().consumers != consumers) continue;
        best = std::min(best, skeleton("attention/sm90_forward").estimate(spec, config, hopper(), size));
      }
      return best;
    };
    if (length == 16384) {
      EXPECT_GT(estimate(2), 3 * estimate(1));
    }
  }
}

TEST(DeltaSkeletons, EstimatesTakeAnySize) {
  const DeltaHstuAttentionSpec spec(params_of(64, 64, DataType::kBf16, true));
  for (const int64_t rows : {0, 1, 64, 5000}) {
    ProblemSize size;
    size.max_seq_len = 1;
    size.other_rows["Lq"] = rows;
    for (const Candidate& candidate : search_space(spec, Direction::kForward, hopper(), size).candidates) {
      EXPECT_TRUE(std::isfinite(candidate.estimate_ms) && candidate.estimate_ms > 0) << describe(candidate.config);
    }
  }
}

TEST(DeltaSkeletons, NoListSortedByRowsOfQ) {
  const DeltaHstuAttentionSpec spec(params_of(64, 64, DataType::kBf16, false));
  const Skeleton& sm90 = skeleton("attention/sm90_forward");
  KernelConfig config = configs_for(spec, hopper(), "attention/sm90_forward").front();
  config.attention().schedule = "persistent";
  std::vector<std::string> reasons;
  for (const Rejection& rejection : sm90.reject(spec, config, hopper())) reasons.push_back(rejection.reason);
  EXPECT_THAT(reasons, Contains("schedule"));
  for (const KernelConfig& offered : sm90.space(spec)) EXPECT_EQ(offered.attention().schedule, "grid");
}

// Clusters split the columns of every tile of one consumer: a config that says so would be another name for it.
TEST(DeltaSkeletons, SharedColumnsAreNoChoice) {
  const DeltaHstuAttentionSpec spec(params_of(64, 64, DataType::kBf16, false));
  const Skeleton& sm90 = skeleton("attention/sm90_forward");
  KernelConfig config = configs_for(spec, hopper(), "attention/sm90_forward").front();
  config.attention().split_kv = true;
  std::vector<std::string> reasons;
  for (const Rejection& rejection : sm90.reject(spec, config, hopper())) reasons.push_back(rejection.reason);
  EXPECT_THAT(reasons, Contains("split_kv"));
  for (const KernelConfig& offered : sm90.space(spec)) EXPECT_FALSE(offered.attention().split_kv);
}

}  // namespace
}  // namespace hstujit
