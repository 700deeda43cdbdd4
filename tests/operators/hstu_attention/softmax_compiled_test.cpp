// Kernels of instances with num_softmax_heads compile without spills, with a libnvrtc: the best of each kind, of all
// heads and of some.
#include <gtest/gtest.h>

#include <set>

#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/delta_hstu_attention/spec.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

class CompiledSoftmax : public CompiledKernels {
 protected:
  void expect_all_fit(const OpSpec& spec, Direction direction, const DeviceSpec& device) {
    std::set<std::string> seen;
    for (const Candidate& candidate : search_space(spec, direction, device, {128, 1024, 0.5}).candidates) {
      if (seen.insert(candidate.config.skeleton + candidate.config.attention().schedule).second)
        expect_fits(spec, direction, candidate.config, device);
      skeletons_.insert(candidate.config.skeleton);
    }
    EXPECT_FALSE(seen.empty()) << spec.to_json().dump();
  }

  std::set<std::string> skeletons_;
};

HstuAttentionParams with_softmax(DataType dtype, int64_t width, bool all) {
  HstuAttentionParams params = make_params(dtype, width, width);
  params.heads = 4;
  params.num_softmax_heads = all ? 4 : 1;
  return params;
}

TEST_F(CompiledSoftmax, OfEveryTypeAndWidth) {
  const DeviceSpec hopper = *known_device("sm_90a");
  for (const bool all : {true, false}) {
    for (const int64_t width : {64, 128, 256}) {
      for (const DataType dtype : {DataType::kBf16, DataType::kFp32}) {
        HstuAttentionParams params = with_softmax(dtype, width, all);
        for (const Direction direction : {Direction::kForward, Direction::kBackward})
          expect_all_fit(HstuAttentionSpec(params), direction, hopper);
      }
    }
  }
  EXPECT_EQ(skeletons_,
            (std::set<std::string>{"attention/sm80_backward", "attention/sm80_forward", "attention/sm90_backward_fused",
                                   "attention/sm90_backward_twopass", "attention/sm90_forward"}));
}

TEST_F(CompiledSoftmax, OfMasksAndOperands) {
  HstuAttentionParams masked = with_softmax(DataType::kBf16, 64, false), bias = masked;
  masked.num_targets = true, masked.max_attn_len = 64, masked.num_contexts = true;
  bias.rab_heads = 2, bias.attn_scale = "rows";
  HstuAttentionParams exact = with_softmax(DataType::kFp32, 256, false);
  exact.precision = MatmulPrecision::kIeee;
  HstuAttentionParams intervals = with_softmax(DataType::kBf16, 128, false);
  intervals.attn_func = 3, intervals.attn_func_heads = 4, intervals.causal = false;
  for (const char* arch : {"sm_90a", "sm_80"}) {
    for (const HstuAttentionParams& params : {masked, bias, exact, intervals}) {
      for (const Direction direction : {Direction::kForward, Direction::kBackward})
        expect_all_fit(HstuAttentionSpec(params), direction, *known_device(arch));
    }
    expect_all_fit(DeltaHstuAttentionSpec(DeltaHstuAttentionParams{masked}), Direction::kForward, *known_device(arch));
  }
}

TEST_F(CompiledSoftmax, OfExpressions) {
  const DeviceSpec hopper = *known_device("sm_90a");
  HstuAttentionParams cap = with_softmax(DataType::kBf16, 128, true), sites = with_softmax(DataType::kBf16, 64, false);
  cap.softmax_score = "30.0 * tanh(x / 30.0)";
  sites.operands = "by: table(129, heads, grad), slope: head(grad), g: scalar(grad)";
  sites.softmax_score = "g * x + by[row - col] - slope * (row - col)";
  HstuAttentionParams others = with_softmax(DataType::kFp32, 64, false);
  others.operands = "t: row(grad), own: sequence(grad), rel: pair(heads, grad)";
  others.softmax_score = "x * t[col] + own * rel[row, col]";
  others.score = "silu(x + t[row])";
  for (const HstuAttentionParams& params : {cap, others}) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward})
      expect_all_fit(HstuAttentionSpec(params), direction, hopper);
  }
  expect_all_fit(HstuAttentionSpec(sites), Direction::kForward, hopper);
  // Another config, of two passes, spills 8 bytes: such a kernel is refused for the next one.
  const HstuAttentionSpec of_sites(sites);
  expect_fits(of_sites, Direction::kBackward,
              *heuristic_config(of_sites, Direction::kBackward, hopper, {.max_seq_len = 1024}), hopper);
  expect_all_fit(of_sites, Direction::kBackward, *known_device("sm_80"));
}

}  // namespace
}  // namespace hstujit
