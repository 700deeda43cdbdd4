// stu_stack: layers of HSTU in order (docs/ops-layers.md, "stu_stack"). A program.
#pragma once

#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program_spec.h"

namespace hstujit {

struct StuStackParams : HstuAttentionParams,
                        StuParams,
                        StuTraining,
                        StuInputParams,
                        StuVariantParams,
                        StuOutputParams,
                        StuMemoryParams {
  static constexpr std::string_view kOp = "stu_stack";
  static constexpr int64_t kMaxLayers = 32;

  int64_t layers = 0;

  static constexpr auto fields() {
    using P = StuStackParams;
    return std::tuple_cat(std::make_tuple(field("layers", &P::layers, "number of layers S", 1, kMaxLayers)),
                          attention_fields_with_products(), StuParams::fields_of<P>(), StuTraining::fields_of<P>(),
                          StuInputParams::fields_of<P>(), StuVariantParams::fields_of<P>(),
                          StuOutputParams::fields_of<P>(), StuMemoryParams::fields_of<P>());
  }
};

// Forward: x (L,D), the weights of all layers, stacked (S,...), what hstu_attention takes besides q, k and v, eps,
// [dropout_ratio, seed or seed_tensor, offset], out (L,D), and with training the inputs of the layers behind the first
// one, hidden_states (L,(S-1)*D), and what each layer gives for backward, side by side. Backward: the same with dout,
// dx and a gradient of each weight.
class StuStackSpec final : public ProgramSpec {
 public:
  StuStackSpec(const StuStackParams& params, Program forward, std::optional<Program> backward)
      : ProgramSpec(std::move(forward), std::move(backward)), params_(params) {}

  std::string_view op() const override { return StuStackParams::kOp; }
  nlohmann::ordered_json to_json() const override;

 private:
  const StuStackParams params_;
};

}  // namespace hstujit
