// Host side of templates/attention/sm80_backward/kernel.cuh: every problem has a config on every device, and figures
// add up.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

const Skeleton& backward() { return **find_skeleton("attention/sm80_backward"); }

HstuAttentionSpec make_spec(DataType dtype, int64_t attn_dim, int64_t hidden_dim,
                            MatmulPrecision precision = MatmulPrecision::kTf32, int64_t alignment = 16) {
  HstuAttentionParams params;
  params.heads = 4;
  params.attn_dim = attn_dim;
  params.hidden_dim = hidden_dim;
  params.dtype = dtype;
  params.precision = precision;
  params.alignment = alignment;
  params.num_targets = true;
  return HstuAttentionSpec(params);
}

DeviceSpec device(const char* name) { return *known_device(name); }

std::vector<HstuAttentionSpec> all_products(int64_t attn_dim, int64_t hidden_dim) {
  return {make_spec(DataType::kBf16, attn_dim, hidden_dim),
          make_spec(DataType::kBf16, attn_dim, hidden_dim, MatmulPrecision::kTf32, 2),
          make_spec(DataType::kFp16, attn_dim, hidden_dim), make_spec(DataType::kFp32, attn_dim, hidden_dim),
          make_spec(DataType::kFp32, attn_dim, hidden_dim, MatmulPrecision::kIeee)};
}

std::vector<KernelConfig> accepted(const HstuAttentionSpec& spec, const DeviceSpec& on) {
  return accepted_of(backward(), spec, on);
}

int64_t constant(const HstuAttentionSpec& spec, const KernelConfig& config, std::string_view name) {
  return constant_of(backward(), spec, config, name);
}

const char* const kDevices[] = {"sm_80", "sm_86", "sm_89", "sm_90a"};

TEST(Sm80BackwardSkeleton, EveryProblemHasAConfigOnEveryDevice) {
  for (const char* name : kDevices) {
    for (int64_t attn_dim = 8; attn_dim <= 256; attn_dim += 8) {
      for (const int64_t hidden_dim : {int64_t{8}, int64_t{40}, attn_dim, int64_t{128}, int64_t{256}}) {
        for (const HstuAttentionSpec& spec : all_products(attn_dim, hidden_dim)) {
          EXPECT_FALSE(accepted(spec, device(name)).empty()) << name << " " << spec.to_json();
        }
      }
    }
  }
}

TEST(Sm80BackwardSkeleton, IsForBackwardOfHstuAttentionAlone) {
  EXPECT_EQ(backward().family(), Family::kAttention);
  EXPECT_EQ(backward().direction(), Direction::kBackward);
  const HstuAttentionSpec spec = make_spec(DataType::kFp32, 64, 64);
  for (const Candidate& candidate : search_space(spec, Direction::kForward, device("sm_80"), {}).candidates) {
    EXPECT_NE(candidate.config.skeleton, backward().name());
  }
  const auto config = heuristic_config(spec, Direction::kBackward, device("sm_80"), {256, 64, 0.6});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->skeleton, backward().name());
}

TEST(Sm80BackwardSkeleton, RejectsWhatItCannotDo) {
  const HstuAttentionSpec spec = make_spec(DataType::kFp32, 64, 64, MatmulPrecision::kIeee);
  const KernelConfig config = accepted(spec, device("sm_80")).front();
  const auto reasons = [&](auto change, const DeviceSpec& on) {
    KernelConfig candidate = config;
    change(candidate);
    std::vector<std::string> names;
    for (const Rejection& rejection : backward().reject(spec, candidate, on)) {
      names.push_back(rejection.reason);
      EXPECT_GT(rejection.detail.size(), 20u);
    }
    return names;
  };
  using testing::Contains;
  EXPECT_THAT(reasons([](auto&) {}, device("sm_80")), testing::IsEmpty());
  EXPECT_THAT(reasons([](auto& c) { c.attention().schedule = "persistent"; }, device("sm_80")), Contains("schedule"));
  EXPECT_THAT(reasons([](auto& c) { c.attention().ping_pong = true; }, device("sm_80")), Contains("ping_pong"));
  EXPECT_THAT(reasons([](auto& c) { c.attention().split_kv = true; }, device("sm_80")), Contains("split_kv"));
  EXPECT_THAT(reasons([](auto& c) { c.attention().activation = "mufu"; }, device("sm_80")), Contains("activation"));
  EXPECT_THAT(reasons([](auto& c) { c.attention().block_m = 0; }, device("sm_80")), Contains("tile"));
  EXPECT_THAT(reasons([](auto& c) { c.attention().block_n = 24; }, device("sm_80")), Contains("tile"));
  EXPECT_THAT(reasons([](auto& c) { c.attention().stages = 16, c.attention().block_n = 64; }, device("sm_80")),
              Contains("shared_memory"));
  EXPECT_THAT(reasons([](auto& c) { c.attention().blocks_per_sm = 8; }, device("sm_80")), Contains("registers"));
  DeviceSpec turing = device("sm_80");
  turing.arch = "sm_75";
  EXPECT_THAT(reasons([](auto&) {}, turing), Contains("arch"));
}

// The template asserts that its struct has kSharedBytes; this is the same formula written from its layout.
TEST(Sm80BackwardSkeleton, SharedMemoryIsThatOfTheLayout) {
  const auto row = [](int64_t width, bool wide) { return wide ? width * 4 : (width + 15) / 16 * 16 * 2; };
  for (const int64_t attn_dim : {8, 40, 64, 96, 256}) {
    for (const int64_t hidden_dim : {24, 128}) {
      for (const HstuAttentionSpec& spec : all_products(attn_dim, hidden_dim)) {
        const bool wide = spec.params().dtype == DataType::kFp32;
        for (const KernelConfig& config : accepted(spec, device("sm_80"))) {
          const int64_t rows = config.attention().block_m + config.attention().stages * config.attention().block_n;
          const int64_t bytes = rows * (row(attn_dim, wide) + row(hidden_dim, wide));
          EXPECT_EQ(constant(spec, config, "shared_bytes"), bytes);
          const LaunchPlan plan = backward().launch_plan(spec, config, device("sm_80"));
          EXPECT_EQ(plan.shared_memory, bytes);
          EXPECT_EQ(plan.threads, 32 * config.attention().warps);
          EXPECT_LE(plan.shared_memory, device("sm_80").shared_memory);
          EXPECT_EQ(config.attention().block_n % constant(spec, config, "chunk_columns"), 0);
        }
      }
    }
  }
}

// dk and dv of 256 columns each are more than the registers of a thread hold.
TEST(Sm80BackwardSkeleton, WideColumnsAreSummedByBlocksOfTheirOwn) {
  for (const auto& [width, roles] : {std::pair{64, 2}, std::pair{256, 3}}) {
    const HstuAttentionSpec spec = make_spec(DataType::kBf16, width, width);
    const KernelConfig config = accepted(spec, device("sm_90a")).front();
    EXPECT_EQ(constant(spec, config, "roles"), roles);
    const LaunchPlan plan = backward().launch_plan(spec, config, device("sm_90a"));
    int64_t constants = 1;
    for (const GridFactor& factor : plan.grid) {
      if (factor.source == GridFactor::Source::kConstant) constants *= factor.constant;
    }
    EXPECT_EQ(constants, roles * spec.params().heads);
  }
}

TEST(Sm80BackwardSkeleton, KernelNamesTellConfigsApart) {
  std::set<std::string> names;
  size_t configs = 0;
  for (const HstuAttentionSpec& spec : {make_spec(DataType::kBf16, 64, 128), make_spec(DataType::kFp16, 64, 128),
                                        make_spec(DataType::kFp32, 64, 128)}) {
    for (const KernelConfig& config : accepted(spec, device("sm_90a"))) {
      names.insert(backward().launch_plan(spec, config, device("sm_90a")).kernel_name);
      ++configs;
    }
  }
  EXPECT_EQ(names.size(), configs);
}

TEST(Sm80BackwardSkeleton, SlotsNameRealArguments) {
  for (const HstuAttentionSpec& spec : all_products(64, 64)) {
    const Signature signature = spec.signature(Direction::kBackward);
    const LaunchPlan plan = backward().launch_plan(spec, accepted(spec, device("sm_80")).front(), device("sm_80"));
    std::set<std::string> names;
    for (const ParamSlot& slot : plan.slots) {
      EXPECT_TRUE(names.insert(slot.name).second) << slot.name;
      ASSERT_GE(slot.argument, 0) << slot.name;
      ASSERT_LT(slot.argument, static_cast<int>(signature.size())) << slot.name;
      EXPECT_EQ(slot.kind == ParamSlot::Kind::kPointer, !slot.type.empty()) << slot.name;
    }
    for (const char* tensor : {"q", "k", "v", "dout", "dq", "dk", "dv"}) {
      for (const char* suffix : {"", "_row_stride", "_head_stride"}) {
        EXPECT_TRUE(names.contains(std::string(tensor) + suffix)) << tensor << suffix;
      }
    }
    EXPECT_FALSE(names.contains("out"));
  }
}

TEST(Sm80BackwardSkeleton, EstimatesGrowWithTheProblem) {
  for (const HstuAttentionSpec& spec : all_products(64, 64)) {
    for (const char* name : kDevices) {
      for (const KernelConfig& config : accepted(spec, device(name))) {
        const double small = backward().estimate(spec, config, device(name), {256, 64, 0.6});
        const double large = backward().estimate(spec, config, device(name), {2048, 64, 0.6});
        EXPECT_GT(small, 0);
        EXPECT_GT(large, small);
      }
    }
  }
}

// On Hopper the wgmma template is expected to be faster wherever it can run at all.
TEST(Sm80BackwardSkeleton, RanksBehindSm90OnHopper) {
  for (const int64_t width : {32, 64, 128, 256}) {
    const HstuAttentionSpec spec = make_spec(DataType::kBf16, width, width);
    for (const int64_t max_seq_len : {128, 1024, 8192}) {
      const auto candidates =
          search_space(spec, Direction::kBackward, device("sm_90a"), {max_seq_len, 256, 0.6}).candidates;
      const auto is_sm90 = [](const Candidate& candidate) {
        return candidate.config.skeleton.starts_with("attention/sm90_backward");
      };
      ASSERT_TRUE(std::any_of(candidates.begin(), candidates.end(), is_sm90)) << width;
      EXPECT_TRUE(is_sm90(candidates.front()))
          << describe(candidates.front().config) << " at " << width << " " << max_seq_len;
    }
  }
}

}  // namespace
}  // namespace hstujit
