// Host side of templates/attention/sm80_forward/kernel.cuh: every problem has a config on every device, and figures add
// up.
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

using testing::HasSubstr;
using testing::Not;

const Skeleton& sm80() { return **find_skeleton("attention/sm80_forward"); }

HstuAttentionSpec make_spec(DataType dtype, int64_t attn_dim, int64_t hidden_dim,
                            MatmulPrecision precision = MatmulPrecision::kTf32, int64_t alignment = 16) {
  HstuAttentionParams params;
  params.heads = 4;
  params.attn_dim = attn_dim;
  params.hidden_dim = hidden_dim;
  params.dtype = dtype;
  params.precision = precision;
  params.alignment = alignment;
  return HstuAttentionSpec(params);
}

DeviceSpec device(const char* name) { return *known_device(name); }

std::vector<HstuAttentionSpec> all_products(int64_t attn_dim, int64_t hidden_dim) {
  return {make_spec(DataType::kBf16, attn_dim, hidden_dim), make_spec(DataType::kFp16, attn_dim, hidden_dim),
          make_spec(DataType::kFp32, attn_dim, hidden_dim),
          make_spec(DataType::kFp32, attn_dim, hidden_dim, MatmulPrecision::kIeee)};
}

std::vector<KernelConfig> accepted(const HstuAttentionSpec& spec, const DeviceSpec& on) {
  return accepted_of(sm80(), spec, on);
}

int64_t constant(const HstuAttentionSpec& spec, const KernelConfig& config, std::string_view name) {
  return constant_of(sm80(), spec, config, name);
}

const char* const kDevices[] = {"sm_80", "sm_86", "sm_89", "sm_90a"};

TEST(Sm80Skeleton, EveryProblemHasAConfigOnEveryDevice) {
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

TEST(Sm80Skeleton, EveryAlignmentIsNative) {
  for (const int64_t alignment : {2, 4, 8, 16}) {
    EXPECT_FALSE(
        accepted(make_spec(DataType::kBf16, 64, 64, MatmulPrecision::kTf32, alignment), device("sm_80")).empty());
  }
}

TEST(Sm80Skeleton, RejectedConfigsSayWhyInASentence) {
  std::set<std::string> seen;
  for (const char* name : kDevices) {
    for (const HstuAttentionSpec& spec : all_products(256, 256)) {
      for (const KernelConfig& config : sm80().space(spec)) {
        for (const Rejection& rejection : sm80().reject(spec, config, device(name))) {
          seen.insert(rejection.reason);
          EXPECT_GT(rejection.detail.size(), 20u);
          EXPECT_THAT(rejection.detail, Not(HasSubstr("\n")));
        }
      }
    }
  }
  EXPECT_THAT(seen, testing::IsSupersetOf({"shared_memory", "registers", "tile", "occupancy"}));
}

TEST(Sm80Skeleton, RejectsWhatItCannotDo) {
  const HstuAttentionSpec spec = make_spec(DataType::kFp32, 64, 64, MatmulPrecision::kIeee);
  KernelConfig config = accepted(spec, device("sm_80")).front();
  const auto reasons = [&](const KernelConfig& candidate, const DeviceSpec& on) {
    std::vector<std::string> names;
    for (const Rejection& rejection : sm80().reject(spec, candidate, on)) names.push_back(rejection.reason);
    return names;
  };
  EXPECT_THAT(reasons(config, device("sm_80")), testing::IsEmpty());

  KernelConfig other = config;
  other.attention().schedule = "persistent";
  EXPECT_THAT(reasons(other, device("sm_80")), testing::Contains("schedule"));
  other = config;
  other.attention().ping_pong = true;
  EXPECT_THAT(reasons(other, device("sm_80")), testing::Contains("ping_pong"));
  other = config;
  other.attention().split_kv = true;
  EXPECT_THAT(reasons(other, device("sm_80")), testing::Contains("split_kv"));
  other = config;
  other.attention().activation = "mufu";
  EXPECT_THAT(reasons(other, device("sm_80")), testing::Contains("activation"));
  other = config;
  other.attention().block_m = 0;
  EXPECT_THAT(reasons(other, device("sm_80")), testing::Contains("tile"));
  other = config;
  other.attention().block_n = 24;
  EXPECT_THAT(reasons(other, device("sm_80")), testing::Contains("tile"));
  other = config;
  other.attention().stages = 40;
  EXPECT_THAT(reasons(other, device("sm_80")), testing::Contains("shared_memory"));
  DeviceSpec turing = device("sm_80");
  turing.arch = "sm_75";
  EXPECT_THAT(reasons(config, turing), testing::Contains("arch"));
}

// The template asserts that its struct has kSharedBytes; this is the same formula written from its layout.
TEST(Sm80Skeleton, SharedMemoryIsThatOfTheLayout) {
  for (const int64_t attn_dim : {8, 40, 64, 96, 256}) {
    for (const int64_t hidden_dim : {24, 128}) {
      for (const HstuAttentionSpec& spec : all_products(attn_dim, hidden_dim)) {
        const bool wide = spec.params().dtype == DataType::kFp32;
        const int64_t qk_row = wide ? attn_dim * 4 : (attn_dim + 15) / 16 * 16 * 2;
        const int64_t v_row = hidden_dim * (wide ? 4 : 2);
        for (const KernelConfig& config : accepted(spec, device("sm_80"))) {
          const int64_t bytes = config.attention().block_m * qk_row +
                                config.attention().stages * config.attention().block_n * (qk_row + v_row);
          EXPECT_EQ(constant(spec, config, "shared_bytes"), bytes);
          const LaunchPlan plan = sm80().launch_plan(spec, config, device("sm_80"));
          EXPECT_EQ(plan.shared_memory, bytes);
          EXPECT_EQ(plan.threads, 32 * config.attention().warps);
          EXPECT_LE(plan.shared_memory, device("sm_80").shared_memory);
        }
      }
    }
  }
}

TEST(Sm80Skeleton, ChunksDivideBlocks) {
  for (const HstuAttentionSpec& spec : all_products(128, 128)) {
    for (const KernelConfig& config : accepted(spec, device("sm_90a"))) {
      const int64_t chunk = constant(spec, config, "chunk_columns");
      EXPECT_GE(chunk, 16);
      EXPECT_EQ(config.attention().block_n % chunk, 0);
    }
  }
}

TEST(Sm80Skeleton, KernelNamesTellConfigsApart) {
  std::set<std::string> names;
  size_t configs = 0;
  for (const HstuAttentionSpec& spec : all_products(64, 128)) {
    for (const KernelConfig& config : accepted(spec, device("sm_90a"))) {
      names.insert(sm80().launch_plan(spec, config, device("sm_90a")).kernel_name);
      ++configs;
    }
  }
  EXPECT_EQ(names.size(), configs);
}

TEST(Sm80Skeleton, SlotsNameRealArguments) {
  for (const HstuAttentionSpec& spec : all_products(64, 64)) {
    const Signature signature = spec.signature(Direction::kForward);
    const LaunchPlan plan = sm80().launch_plan(spec, accepted(spec, device("sm_80")).front(), device("sm_80"));
    std::set<std::string> names;
    for (const ParamSlot& slot : plan.slots) {
      EXPECT_TRUE(names.insert(slot.name).second) << slot.name;
      ASSERT_GE(slot.argument, 0) << slot.name;
      ASSERT_LT(slot.argument, static_cast<int>(signature.size())) << slot.name;
      EXPECT_EQ(slot.kind == ParamSlot::Kind::kPointer, !slot.type.empty()) << slot.name;
    }
    for (const char* needed : {"q", "q_row_stride", "k_head_stride", "v", "out", "seq_offsets", "inverse_scale"}) {
      EXPECT_TRUE(names.contains(needed)) << needed;
    }
  }
}

TEST(Sm80Skeleton, EstimatesGrowWithTheProblem) {
  for (const HstuAttentionSpec& spec : all_products(64, 64)) {
    for (const char* name : kDevices) {
      for (const KernelConfig& config : accepted(spec, device(name))) {
        const double small = sm80().estimate(spec, config, device(name), {256, 64, 0.6});
        const double large = sm80().estimate(spec, config, device(name), {2048, 64, 0.6});
        EXPECT_GT(small, 0);
        EXPECT_GT(large, small);
      }
    }
  }
}

// On Hopper the wgmma template is expected to be faster wherever it can run at all.
TEST(Sm80Skeleton, RanksBehindSm90OnHopper) {
  for (const auto& [attn_dim, hidden_dim] : {std::pair{32, 32}, {64, 64}, {128, 128}, {64, 128}, {256, 256}}) {
    const HstuAttentionSpec spec = make_spec(DataType::kBf16, attn_dim, hidden_dim);
    for (const int64_t max_seq_len : {128, 1024, 8192}) {
      const SearchSpace space = search_space(spec, Direction::kForward, device("sm_90a"), {max_seq_len, 256, 0.6});
      const auto is_sm90 = [](const Candidate& candidate) {
        return candidate.config.skeleton == "attention/sm90_forward";
      };
      if (std::none_of(space.candidates.begin(), space.candidates.end(), is_sm90)) continue;
      EXPECT_TRUE(is_sm90(space.candidates.front()))
          << describe(space.candidates.front().config) << " at " << attn_dim << " " << max_seq_len;
    }
  }
}

// The sm90 model counts what long tiles keep waiting, this one does not.
TEST(Sm80Skeleton, RanksBehindSm90OnHopperWhereFewTilesAreLong) {
  HstuAttentionParams params = make_spec(DataType::kBf16, 128, 128).params();
  params.max_attn_len = 256;
  params.contextual_seq_len = 32;
  for (const int64_t max_seq_len : {128, 1024, 16384, 65536, 1 << 28}) {
    const SearchSpace space =
        search_space(HstuAttentionSpec(params), Direction::kForward, device("sm_90a"), {max_seq_len, 256, 0.6});
    EXPECT_EQ(space.candidates.front().config.skeleton, "attention/sm90_forward") << max_seq_len;
  }
}

}  // namespace
}  // namespace hstujit
