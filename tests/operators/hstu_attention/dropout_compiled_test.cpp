// Kernels of instances with dropout compile without spills, with a libnvrtc: the best of each kind, of all scores and
// of heads with softmax.
#include <gtest/gtest.h>

#include <set>

#include "compiler/plan/search_space.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/operators/hstu_attention/skeleton_cases.h"

namespace hstujit {
namespace {

class CompiledDropout : public CompiledKernels {
 protected:
  void expect_all_fit(const HstuAttentionParams& params, const char* arch) {
    const HstuAttentionSpec spec(params);
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      std::set<std::string> seen;
      const DeviceSpec device = *known_device(arch);
      for (const Candidate& candidate : search_space(spec, direction, device, {128, 1024, 0.5}).candidates) {
        if (seen.insert(candidate.config.skeleton + candidate.config.attention().schedule).second)
          expect_fits(spec, direction, candidate.config, device);
      }
      EXPECT_FALSE(seen.empty()) << spec.to_json().dump();
    }
  }
};

TEST_F(CompiledDropout, OfTypesAndOperands) {
  HstuAttentionParams plain = make_params(DataType::kBf16, 64, 64);
  plain.attn_dropout = true;
  HstuAttentionParams wide = make_params(DataType::kFp16, 128, 128), bias = plain, softmax = plain, exact = plain;
  wide.attn_dropout = wide.attn_seed_tensor = true;
  bias.rab_heads = 2, bias.attn_scale = "rows";
  softmax.num_softmax_heads = 4, softmax.rab_heads = 4;
  exact.dtype = DataType::kFp32;
  for (const HstuAttentionParams& params : {plain, wide, bias, softmax, exact}) expect_all_fit(params, "sm_90a");
  for (const HstuAttentionParams& params : {plain, softmax}) expect_all_fit(params, "sm_80");
}

}  // namespace
}  // namespace hstujit
