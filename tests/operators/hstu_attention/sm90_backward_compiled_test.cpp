// Host side of templates/attention/sm90_backward_twopass/kernel.cuh: what Hopper gets a config for, what is refused and
// why, and figures that add up; with a libnvrtc, that kernels compile without spills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "templates/attention/sm90_backward_twopass/resources.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

using testing::Contains;
using testing::HasSubstr;

const Skeleton& skeleton() { return **find_skeleton("attention/sm90_backward_twopass"); }
DeviceSpec hopper() { return *known_device("sm_90a"); }

HstuAttentionSpec make_spec(DataType dtype, int64_t attn_dim, int64_t hidden_dim) {
  return HstuAttentionSpec(make_params(dtype, attn_dim, hidden_dim));
}

std::vector<KernelConfig> accepted(const HstuAttentionSpec& spec) { return accepted_of(skeleton(), spec, hopper()); }

std::vector<std::string> reasons(const HstuAttentionSpec& spec, const KernelConfig& config, const DeviceSpec& on) {
  return reasons_of(skeleton(), spec, config, on);
}

int64_t constant(const HstuAttentionSpec& spec, const KernelConfig& config, std::string_view name) {
  return constant_of(skeleton(), spec, config, name);
}

TEST(Sm90Backward, EveryHeadDimensionHasAConfig) {
  for (const HstuAttentionSpec& spec : matrix_specs()) EXPECT_FALSE(accepted(spec).empty()) << spec.to_json();
}

// Sums of dk and dv of 256 columns together are what registers hold; wider ones are CTAs of their own.
TEST(Sm90Backward, WideSumsAreRolesOfTheirOwn) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    const int64_t roles = spec.params().attn_dim + spec.params().hidden_dim > 256 ? 3 : 2;
    for (const KernelConfig& config : accepted(spec)) {
      EXPECT_EQ(constant(spec, config, "roles"), roles);
      int64_t constants = 1;
      for (const GridFactor& factor : skeleton().launch_plan(spec, config, hopper()).grid) {
        if (factor.source == GridFactor::Source::kConstant) constants *= factor.constant;
      }
      EXPECT_EQ(constants, roles * spec.params().heads);
    }
  }
}

TEST(Sm90Backward, SumsThatDoNotFitAreNamed) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 256, 128);
  KernelConfig config = accepted(spec).front();
  config.attention().block_n = 96;
  const std::vector<Rejection> rejections = skeleton().reject(spec, config, hopper());
  const auto found = std::find_if(rejections.begin(), rejections.end(),
                                  [](const Rejection& rejection) { return rejection.reason == "registers"; });
  ASSERT_NE(found, rejections.end());
  EXPECT_THAT(found->detail, HasSubstr("sums of 256 and 128 columns"));
}

TEST(Sm90Backward, NothingForFp32) {
  const HstuAttentionSpec spec = make_spec(DataType::kFp32, 64, 64);
  ASSERT_FALSE(skeleton().space(spec).empty());
  for (const KernelConfig& config : skeleton().space(spec))
    EXPECT_THAT(reasons(spec, config, hopper()), Contains("dtype"));
}

TEST(Sm90Backward, RejectsWhatItCannotDo) {
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
  DeviceSpec narrow = hopper();
  narrow.max_threads = 128;
  EXPECT_THAT(reasons(spec, config, narrow), Contains("threads"));
}

// Records and HSTUJIT_OVERRIDE may hold anything.
TEST(Sm90Backward, RejectsShapesThatItDoesNotHave) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 64, 64);
  const KernelConfig config = accepted(spec).front();
  const auto with = [&](auto change) {
    KernelConfig changed = config;
    change(changed);
    return reasons(spec, changed, hopper());
  };
  for (const int64_t lines : {0, 64, 100, 192})
    EXPECT_THAT(with([&](KernelConfig& c) { c.attention().consumers = 2, c.attention().block_m = lines; }),
                Contains("block_m"))
        << lines;
  for (const int64_t consumers : {0, 4}) {
    EXPECT_THAT(
        with([&](KernelConfig& c) { c.attention().consumers = consumers, c.attention().block_m = 64 * consumers; }),
        Contains("block_m"));
  }
  for (const int64_t lines : {0, 24, 272})
    EXPECT_THAT(with([&](KernelConfig& c) { c.attention().block_n = lines; }), Contains("block_n")) << lines;
  // A consumer waits for a tile while it still holds the stage of the one before.
  EXPECT_THAT(with([&](KernelConfig& c) { c.attention().stages = 1; }), Contains("stages"));
  EXPECT_THAT(with([&](KernelConfig& c) { c.attention().ping_pong = true; }), Contains("ping_pong"));
  EXPECT_THAT(with([&](KernelConfig& c) { c.attention().split_kv = true; }), Contains("split_kv"));
}

// Both roles have a pair of stationary tiles and pairs of moving ones, tiles of 64 columns in rows of 128 bytes.
TEST(Sm90Backward, SharedMemoryHoldsTheOperands) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    const int64_t tiles = (spec.params().attn_dim + 63) / 64 + (spec.params().hidden_dim + 63) / 64;
    for (const KernelConfig& config : accepted(spec)) {
      const int64_t stationary = constant(spec, config, "stationary_stages") * config.attention().block_m;
      const int64_t operands = 128 * tiles * (stationary + config.attention().stages * config.attention().block_n);
      const int64_t bytes = skeleton().launch_plan(spec, config, hopper()).shared_memory;
      EXPECT_EQ(constant(spec, config, "shared_bytes"), bytes);
      EXPECT_GT(bytes, operands);
      EXPECT_LT(bytes, operands + 16 * 1024);
      EXPECT_LE((bytes + 1024) * config.attention().blocks_per_sm, hopper().shared_memory + 1024);
    }
  }
}

TEST(Sm90Backward, RegistersAndThreadsFitTheDevice) {
  for (const HstuAttentionSpec& spec : matrix_specs()) {
    for (const KernelConfig& config : accepted(spec)) {
      const LaunchPlan plan = skeleton().launch_plan(spec, config, hopper());
      EXPECT_EQ(constant(spec, config, "threads"), plan.threads);
      EXPECT_LE(plan.threads * config.attention().blocks_per_sm, hopper().max_threads);
      const sm90::backward::Resources resources(spec, config.attention());
      const int64_t consumers = 128 * config.attention().consumers, producers = plan.threads - consumers;
      // Without setmaxnreg the producer has as many as the others.
      const int64_t of_producer =
          resources.producer_registers > 0 ? resources.producer_registers : resources.consumer_registers;
      EXPECT_LE(config.attention().blocks_per_sm * (consumers * resources.consumer_registers + producers * of_producer),
                hopper().registers);
      EXPECT_LE(resources.registers_needed, resources.consumer_registers);
      EXPECT_EQ(resources.consumer_registers % 8, 0);
      EXPECT_EQ(resources.producer_registers % 8, 0);
    }
  }
}

// The members that templates/attention/sm90_backward_*/kernel.cuh read.
TEST(Sm90Backward, SlotsAreThoseOfTheTemplate) {
  for (const bool targets : {false, true}) {
    HstuAttentionParams params = make_params(DataType::kBf16, 64, 128);
    params.num_targets = targets;
    const HstuAttentionSpec spec(params);
    const Signature signature = spec.signature(Direction::kBackward);
    for (const KernelConfig& config : accepted(spec)) {
      const LaunchPlan plan = skeleton().launch_plan(spec, config, hopper());
      std::set<std::string> names;
      for (const ParamSlot& slot : plan.slots) {
        EXPECT_TRUE(names.insert(slot.name).second) << slot.name;
        ASSERT_GE(slot.argument, 0) << slot.name;
        ASSERT_LT(slot.argument, static_cast<int>(signature.size())) << slot.name;
        EXPECT_EQ(slot.kind == ParamSlot::Kind::kPointer, !slot.type.empty()) << slot.name;
        if (slot.kind != ParamSlot::Kind::kTensorMap) continue;
        const Argument& tensor = signature[static_cast<size_t>(slot.argument)];
        ASSERT_EQ(slot.map.axes.size(), 3u);
        EXPECT_EQ(slot.map.axes[0].box, 64);
        const int box_rows = slot.map.axes[2].box;
        if (tensor.role == ArgumentRole::kOutput || slot.name == tensor.name + "_tail_map") {
          EXPECT_EQ(box_rows, 16) << slot.name;  // kTailBoxRows
        } else if (slot.name == tensor.name + "_moving_map") {
          EXPECT_EQ(box_rows, config.attention().block_n);
        } else {
          EXPECT_EQ(slot.name, tensor.name + "_map");
          EXPECT_EQ(box_rows, config.attention().block_m);
        }
      }
      std::set<std::string> needed = {"total_rows", "seq_offsets", "batch", "max_query_rows", "alpha", "inverse_scale"};
      for (const char* operand : {"q", "k", "v", "dout"}) {
        for (const char* map : {"_map", "_moving_map", "_tail_map"}) needed.insert(std::string(operand) + map);
      }
      for (const char* output : {"dq", "dk", "dv"}) {
        for (const char* member : {"", "_map", "_row_stride", "_head_stride"})
          needed.insert(std::string(output) + member);
      }
      if (targets) needed.insert("num_targets");
      for (const char* operand : {"q", "k", "dout"}) {
        if (!config.attention().pack_sequences) break;
        for (const char* member : {"", "_row_stride", "_head_stride"}) needed.insert(std::string(operand) + member);
      }
      EXPECT_EQ(names, needed);
      EXPECT_LE(slot_offsets(plan.slots).back(), 4096u) << "what a kernel's parameters may take";
    }
  }
}

// A CTA for each role of each tile of the longest sequence, or of all rows.
TEST(Sm90Backward, TheGridHasEachRoleOfEachTile) {
  const HstuAttentionSpec spec = make_spec(DataType::kBf16, 128, 128);
  const Signature signature = spec.signature(Direction::kBackward);
  for (const KernelConfig& config : accepted(spec)) {
    const LaunchPlan plan = skeleton().launch_plan(spec, config, hopper());
    int64_t constants = 1;
    std::set<std::string> arguments;
    for (const GridFactor& factor : plan.grid) {
      if (factor.source == GridFactor::Source::kConstant) {
        constants *= factor.constant;
        continue;
      }
      const std::string& name = signature[static_cast<size_t>(factor.argument)].name;
      arguments.insert(name);
      const int64_t of_sequences = config.attention().pack_sequences ? std::numeric_limits<int64_t>::max() : 1;
      EXPECT_EQ(factor.divisor, name == "seq_offsets" ? of_sequences : config.attention().block_m);
      EXPECT_EQ(factor.bias, name == "seq_offsets" ? -1 : 0);
    }
    EXPECT_EQ(constants, 2 * spec.params().heads);
    const std::set<std::string> of_rows = {"q", "seq_offsets"}, of_sequences = {"max_seq_len", "seq_offsets"};
    EXPECT_EQ(arguments, config.attention().pack_sequences ? of_rows : of_sequences);
    EXPECT_EQ(plan.persistent_blocks,
              config.attention().schedule == "persistent" ? hopper().sm_count * config.attention().blocks_per_sm : 0);
  }
}

// Fields that the space leaves at their defaults may be set by hand, and are said, too.
TEST(Sm90Backward, KernelNamesTellConfigsApart) {
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

TEST(Sm90Backward, EstimatesGrowWithTheProblem) {
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
  return *heuristic_config(spec, Direction::kBackward, hopper(), size);
}

// Narrow moving tiles read the stationary tile from shared memory so often that the tensor cores wait, and two
// warpgroups share what one CTA loads.
TEST(Sm90Backward, LongSequencesGetTwoConsumersAndBlocksOf64) {
  for (const int64_t width : {64, 128}) {
    const HstuAttentionSpec spec = make_spec(DataType::kBf16, width, width);
    for (const int64_t length : {4096, 16384}) {
      const KernelConfig config = first_choice(spec, length);
      EXPECT_EQ(config.attention().consumers, 2) << width << " " << length;
      EXPECT_GE(config.attention().block_n, 64) << width << " " << length;
    }
  }
}

TEST(Sm90Backward, SequencesOfOneTileGetNoMoreThanTheirRows) {
  EXPECT_EQ(first_choice(make_spec(DataType::kBf16, 64, 64), 64).attention().block_m, 64);
}

class Sm90BackwardCompiled : public CompiledKernels {
 protected:
  void expect_fits(const HstuAttentionSpec& spec, const KernelConfig& config) {
    CompiledKernels::expect_fits(spec, Direction::kBackward, config, hopper());
  }
};

TEST_F(Sm90BackwardCompiled, EveryCandidateOf64And128) {
  for (const int64_t width : {64, 128}) {
    const HstuAttentionSpec spec = make_spec(DataType::kBf16, width, width);
    for (const KernelConfig& config : accepted(spec)) {
      // The pipeline's depth is a constant, and a list adds little to a grid: few of them stand for all.
      if (config.attention().stages == 2 && (config.attention().schedule == "grid" || config.attention().block_n == 64))
        expect_fits(spec, config);
    }
  }
}

TEST_F(Sm90BackwardCompiled, TheFirstChoiceOfOtherMasksAndWidths) {
  HstuAttentionParams mixed;
  mixed.max_attn_len = 256;
  mixed.contextual_seq_len = 32;
  mixed.num_targets = true;
  HstuAttentionParams groups;
  groups.num_targets = true;
  groups.target_group_size = 4;
  struct Case {
    HstuAttentionParams mask;
    int64_t attn_dim, hidden_dim;
  };
  for (const auto& [mask, attn_dim, hidden_dim] : {Case{mixed, 96, 96}, Case{mixed, 128, 128}, Case{mixed, 64, 128},
                                                   Case{groups, 256, 256}, Case{groups, 128, 64}}) {
    HstuAttentionParams params = mask;
    params.heads = 4;
    params.attn_dim = attn_dim;
    params.hidden_dim = hidden_dim;
    params.dtype = attn_dim == hidden_dim ? DataType::kFp16 : DataType::kBf16;
    const HstuAttentionSpec spec(params);
    expect_fits(spec, first_choice(spec, 2048));
  }
}

}  // namespace
}  // namespace hstujit
