// Instances with a bias and factors of the scores: which kernels follow one of backward and what they are launched
// with; with a libnvrtc, that what the cost models choose first compiles without spills.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = ParamSlot::Kind;

HstuAttentionParams with_bias(DataType dtype, int64_t width) {
  HstuAttentionParams params = make_params(dtype, width, width);
  params.rab_heads = 2;
  params.attn_scale = "rows";
  return params;
}

constexpr const char* kTwoPasses = "attention/sm90_backward_twopass";
constexpr const char* kFused = "attention/sm90_backward_fused";

// First choice among all templates, or of one.
KernelConfig first_choice(const HstuAttentionSpec& spec, Direction direction, const DeviceSpec& device,
                          std::string_view skeleton = "") {
  ProblemSize size;
  size.max_seq_len = 1024;
  const std::vector<Candidate> candidates = search_space(spec, direction, device, size, {}).candidates;
  const auto choice = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
    return skeleton.empty() || candidate.config.skeleton == skeleton;
  });
  if (choice == candidates.end()) throw std::invalid_argument(fmt::format("{} has no candidate", skeleton));
  return choice->config;
}

LaunchPlan plan_of(const HstuAttentionParams& params, std::string_view device = "sm_90a",
                   std::string_view skeleton = "") {
  const HstuAttentionSpec spec(params);
  const DeviceSpec on = *known_device(device);
  const KernelConfig config = first_choice(spec, Direction::kBackward, on, skeleton);
  return (*find_skeleton(config.skeleton))->launch_plan(spec, config, on);
}

std::vector<std::string> functions_of(const LaunchPlan& plan) {
  std::vector<std::string> functions;
  for (const FollowingKernel& kernel : plan.following) functions.push_back(kernel.function);
  return functions;
}

std::vector<std::string> slots_like(const LaunchPlan& plan, std::string_view begin) {
  std::vector<std::string> names;
  for (const ParamSlot& slot : plan.slots) {
    if (slot.name.starts_with(begin)) names.push_back(slot.name);
  }
  return names;
}

TEST(BiasKernels, FollowTheOneOfTheOtherGradients) {
  HstuAttentionParams params = with_bias(DataType::kBf16, 64);
  EXPECT_THAT(functions_of(plan_of(params, "sm_80")), ElementsAre("bias_gradient", "scale_gradient"));
  EXPECT_THAT(functions_of(plan_of(params, "sm_90a", kTwoPasses)),
              ElementsAre("wgmma_bias_gradient", "scale_gradient"));
  params.attn_scale = "scalar";
  EXPECT_THAT(functions_of(plan_of(params, "sm_90a", kTwoPasses)),
              ElementsAre("wgmma_bias_gradient", "scale_gradient", "add_row_sums"));
  params.drab = false;
  EXPECT_THAT(functions_of(plan_of(params, "sm_90a", kTwoPasses)), ElementsAre("scale_gradient", "add_row_sums"));
  params.dattn_scale = false;
  EXPECT_THAT(functions_of(plan_of(params, "sm_90a", kTwoPasses)), IsEmpty());
}

// Kernels of Hopper read q, k, v and dout by maps; the others need addresses.
TEST(BiasKernels, HaveTheAddressesOfWhatTheyRead) {
  const HstuAttentionParams params = with_bias(DataType::kBf16, 64);
  for (const char* device : {"sm_90a", "sm_80"}) {
    const LaunchPlan plan = plan_of(params, device);
    for (const char* tensor : {"q", "k", "v", "dout"}) {
      const std::string name(tensor);
      int count = 0;
      for (const ParamSlot& slot : plan.slots) count += slot.name == name || slot.name == name + "_row_stride";
      EXPECT_EQ(count, 2) << tensor << " " << device;
    }
    EXPECT_THAT(slots_like(plan, "drab"),
                ElementsAre("drab", "drab_batch_stride", "drab_head_stride", "drab_row_stride"));
  }
  HstuAttentionParams adding = params;
  adding.adds_gradients = true;
  EXPECT_THAT(
      slots_like(plan_of(adding, "sm_90a"), "drab_before"),
      ElementsAre("drab_before", "drab_before_batch_stride", "drab_before_head_stride", "drab_before_row_stride"));
  EXPECT_THAT(slots_like(plan_of(adding, "sm_80"), "dattn_scale_before"), ElementsAre("dattn_scale_before"));
  HstuAttentionParams none = params;
  none.drab = none.dattn_scale = false;
  EXPECT_THAT(slots_like(plan_of(none, "sm_90a", kTwoPasses), "dout"),
              ElementsAre("dout_map", "dout_moving_map", "dout_tail_map"));
}

// Row sums have a workspace of their own where the plan has none.
TEST(BiasKernels, AddUpRowsInAWorkspace) {
  HstuAttentionParams params = with_bias(DataType::kBf16, 64);
  EXPECT_THAT(plan_of(params, "sm_90a", kTwoPasses).workspace.regions, IsEmpty());
  params.attn_scale = "scalar";
  const LaunchPlan apart = plan_of(params, "sm_90a", kTwoPasses);
  ASSERT_EQ(apart.workspace.regions.size(), 1u);
  ASSERT_EQ(apart.workspace.regions[0].bytes.size(), 2u);
  EXPECT_EQ(apart.workspace.regions[0].bytes[0].source, GridFactor::Source::kSize);
  EXPECT_EQ(apart.workspace.regions[0].bytes[1].constant, 4);
  EXPECT_FALSE(apart.workspace.regions[0].cleared);

  const HstuAttentionSpec spec(params);
  const Skeleton& fused = **find_skeleton(kFused);
  const KernelConfig config = accepted_of(fused, spec, *known_device("sm_90a")).front();
  const LaunchPlan plan = fused.launch_plan(spec, config, *known_device("sm_90a"));
  EXPECT_THAT(functions_of(plan), ElementsAre("convert_dq", "wgmma_bias_gradient", "scale_gradient", "add_row_sums"));
  ASSERT_EQ(plan.workspace.regions.size(), 2u) << "dq follows the counter of tiles";
  EXPECT_TRUE(plan.workspace.regions[1].cleared);
  EXPECT_EQ(plan.workspace.regions[1].bytes[1].constant, 8 * params.heads * params.attn_dim * 4);
}

TEST(BiasKernels, SayTheirNames) {
  HstuAttentionParams params = with_bias(DataType::kBf16, 64);
  EXPECT_TRUE(plan_of(params).kernel_name.starts_with("hstu_attention_rab_scale_rows_backward"));
  params.attn_scale = "none";
  EXPECT_TRUE(plan_of(params).kernel_name.starts_with("hstu_attention_rab_backward"));
}

class BiasKernelsCompiled : public CompiledKernels {
 protected:
  void expect_first_choice_fits(const HstuAttentionParams& params, const char* device, Direction direction,
                                std::string_view skeleton = "") {
    const HstuAttentionSpec spec(params);
    const DeviceSpec on = *known_device(device);
    expect_fits(spec, direction, first_choice(spec, direction, on, skeleton), on);
  }
};

TEST_F(BiasKernelsCompiled, HopperForward) {
  for (const int64_t width : {64, 128, 256}) {
    HstuAttentionParams params = with_bias(DataType::kBf16, width);
    expect_first_choice_fits(params, "sm_90a", Direction::kForward);
    params.contextual_seq_len = 7;
    params.num_targets = true;
    expect_first_choice_fits(params, "sm_90a", Direction::kForward);
  }
}

TEST_F(BiasKernelsCompiled, HopperBackward) {
  for (const int64_t width : {64, 128}) {
    HstuAttentionParams params = with_bias(DataType::kBf16, width);
    expect_first_choice_fits(params, "sm_90a", Direction::kBackward, kTwoPasses);
    params.contextual_seq_len = 7;
    params.num_targets = true;
    expect_first_choice_fits(params, "sm_90a", Direction::kBackward);
  }
  expect_first_choice_fits(with_bias(DataType::kFp16, 256), "sm_90a", Direction::kBackward);
}

// Factors of rows leave no registers for the fused kernel's sums of 128 columns.
TEST_F(BiasKernelsCompiled, HopperBackwardFused) {
  const HstuAttentionSpec spec(with_bias(DataType::kBf16, 64));
  const DeviceSpec on = *known_device("sm_90a");
  std::set<std::string> schedules;
  for (const KernelConfig& config : accepted_of(**find_skeleton(kFused), spec, on)) {
    if (schedules.insert(config.attention().schedule).second) expect_fits(spec, Direction::kBackward, config, on);
  }
  EXPECT_THAT(schedules, ElementsAre("per_sequence", "persistent", "semaphore"));
}

// Room is short for the widest: there are configs for them all the same.
TEST(BiasKernels, ServeTheWidest) {
  for (const DataType dtype : {DataType::kBf16, DataType::kFp32}) {
    for (const MatmulPrecision precision : {MatmulPrecision::kTf32, MatmulPrecision::kIeee}) {
      HstuAttentionParams params = with_bias(dtype, 256);
      params.precision = dtype == DataType::kFp32 ? precision : MatmulPrecision::kTf32;
      const HstuAttentionSpec spec(params);
      for (const char* device : {"sm_90a", "sm_80"}) {
        for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
          EXPECT_TRUE(heuristic_config(spec, direction, *known_device(device), {.max_seq_len = 1024}).ok())
              << spec.to_json() << device << to_string(direction);
        }
      }
    }
  }
}

TEST_F(BiasKernelsCompiled, AmpereOfWideRows) {
  for (const DataType dtype : {DataType::kBf16, DataType::kFp32}) {
    expect_first_choice_fits(with_bias(dtype, 256), "sm_80", Direction::kBackward);
  }
  HstuAttentionParams ieee = with_bias(DataType::kFp32, 256);
  ieee.precision = MatmulPrecision::kIeee;
  expect_first_choice_fits(ieee, "sm_80", Direction::kBackward);
  expect_first_choice_fits(with_bias(DataType::kBf16, 256), "sm_80", Direction::kForward);
}

TEST_F(BiasKernelsCompiled, Ampere) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (const DataType dtype : {DataType::kBf16, DataType::kFp32}) {
      expect_first_choice_fits(with_bias(dtype, 64), "sm_80", direction);
    }
    expect_first_choice_fits(with_bias(DataType::kFp16, 128), "sm_80", direction);
    HstuAttentionParams ieee = with_bias(DataType::kFp32, 128);
    ieee.precision = MatmulPrecision::kIeee;
    expect_first_choice_fits(ieee, "sm_80", direction);
  }
}

}  // namespace
}  // namespace hstujit
