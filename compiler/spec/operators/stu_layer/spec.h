// stu_layer: a whole layer of HSTU, from x to x and what attention adds to it (docs/ops-layers.md, "stu_layer"). A
// program.
#pragma once

#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program_spec.h"

namespace hstujit {

struct StuLayerParams : HstuAttentionParams,
                        StuParams,
                        StuTraining,
                        StuInputParams,
                        StuVariantParams,
                        StuOutputParams,
                        StuMemoryParams,
                        StuTargetParams {
  static constexpr std::string_view kOp = "stu_layer";

  static constexpr auto fields() {
    using P = StuLayerParams;
    return std::tuple_cat(attention_fields_with_products(), StuParams::fields_of<P>(), StuTraining::fields_of<P>(),
                          StuInputParams::fields_of<P>(), StuVariantParams::fields_of<P>(),
                          StuOutputParams::fields_of<P>(), StuMemoryParams::fields_of<P>(),
                          StuTargetParams::fields_of<P>());
  }
};

// Forward: x (L,D), the weights, what hstu_attention takes besides q, k and v, eps, [dropout_ratio, seed or
// seed_tensor, offset], out (L,D), and with training attn (L,H*Dv) and what is not computed again. Backward: the same
// with dout, dx and a gradient of each weight. With row_numbers, launches take row_numbers (L). With targets_only
// that, out, attn, y and dout have the rows Lq, and launches take seq_offsets_q (B+1) and max_delta_len (int), too.
class StuLayerSpec final : public ProgramSpec {
 public:
  StuLayerSpec(const StuLayerParams& params, Program forward, std::optional<Program> backward)
      : ProgramSpec(std::move(forward), std::move(backward)), params_(params) {}

  std::string_view op() const override { return StuLayerParams::kOp; }
  nlohmann::ordered_json to_json() const override;

 private:
  const StuLayerParams params_;
};

}  // namespace hstujit
