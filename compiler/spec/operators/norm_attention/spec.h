// norm_attention: a norm of each row, then hstu_attention on the result's columns v, q and k (docs/ops-layers.md,
// "norm_attention"). A program.
#pragma once

#include "compiler/spec/operators/hstu_attention/params.h"
#include "compiler/spec/program_spec.h"

namespace hstujit {

// The norms by the names of their operators.
inline constexpr std::string_view kNorms = "layer_norm rms_norm";

// Parameters beside the fields of HstuAttentionParams.
struct NormParams {
  std::string norm = "layer_norm";  // one of kNorms
  bool weight = true;
  bool bias = true;  // of layer_norm
  DataType weight_dtype = DataType::kFp32;

  static constexpr auto fields() {
    using P = NormParams;
    return std::make_tuple(
        field("norm", &P::norm, "operator that normalises the rows").one_of(kNorms),
        field("weight", &P::weight, "the norm takes a weight, a factor of each column"),
        field("bias", &P::bias, "layer_norm takes a bias, added to each column"),
        field("weight_dtype", &P::weight_dtype, "data type of weight and bias, and of their gradients: fp32 or dtype")
            .one_of("bf16 fp16 fp32"));
  }
};

// Forward: x (L,D), [weight (D)], [bias (D)], eps, what hstu_attention takes besides q, k and v, out (L,H,Dv).
// Backward, which normalises again: x, [weight], [bias], eps, dout and what hstu_attention's backward takes besides;
// dx, [dweight], [dbias] and its other gradients.
class NormAttentionSpec final : public ProgramSpec {
 public:
  // The specs of the steps are what the parameters say.
  NormAttentionSpec(HstuAttentionParams attention, NormParams norm, const OpSpecPtr& attention_spec,
                    const OpSpecPtr& norm_spec);

  std::string_view op() const override { return "norm_attention"; }
  nlohmann::ordered_json to_json() const override;

 private:
  HstuAttentionParams attention_;
  NormParams norm_;
};

}  // namespace hstujit
