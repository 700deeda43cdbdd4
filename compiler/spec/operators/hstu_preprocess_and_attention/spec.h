// hstu_preprocess_and_attention: the half of a layer up to attention (docs/ops-layers.md,
// "hstu_preprocess_and_attention"). A program.
#pragma once

#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program_spec.h"

namespace hstujit {

struct HstuPreprocessAndAttentionParams : HstuAttentionParams, StuParams, StuTraining, StuInputParams {
  static constexpr std::string_view kOp = "hstu_preprocess_and_attention";

  static constexpr auto fields() {
    using P = HstuPreprocessAndAttentionParams;
    return std::tuple_cat(attention_fields_with_products(), StuParams::fields_of<P>(), StuTraining::fields_of<P>(),
                          StuInputParams::fields_of<P>());
  }
};

// Forward: x (L,D), the weights, what hstu_attention takes besides q, k and v, eps, u (L,H*Dv), attn (L,H,Dv) and, with
// training, what is not computed again. Backward: the same with du and dattn, dx and a gradient of each weight.
class HstuPreprocessAndAttentionSpec final : public ProgramSpec {
 public:
  HstuPreprocessAndAttentionSpec(const HstuPreprocessAndAttentionParams& params, Program forward,
                                 std::optional<Program> backward)
      : ProgramSpec(std::move(forward), std::move(backward)), params_(params) {}

  std::string_view op() const override { return HstuPreprocessAndAttentionParams::kOp; }
  nlohmann::ordered_json to_json() const override;

 private:
  const HstuPreprocessAndAttentionParams params_;
};

}  // namespace hstujit
