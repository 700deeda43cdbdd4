// hstu_compute_output: the half of a layer behind attention (docs/ops-layers.md, "hstu_compute_output"). A program.
#pragma once

#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program_spec.h"

namespace hstujit {

struct HstuComputeOutputParams : StuParams, StuTraining, StuOutputParams {
  static constexpr std::string_view kOp = "hstu_compute_output";

  int64_t heads = 1;
  int64_t hidden_dim = 0;
  DataType dtype = DataType::kBf16;
  MatmulPrecision precision = MatmulPrecision::kTf32;  // fp32 data only, canonicalised to tf32 otherwise
  bool silu_u = false;
  std::string mul_u_activation = "none";

  static constexpr auto fields() {
    using P = HstuComputeOutputParams;
    return std::tuple_cat(
        std::make_tuple(
            field("heads", &P::heads, "number of attention heads H", 1, 1024),
            field("hidden_dim", &P::hidden_dim, "head dimension of attn and u", 1, 256),
            field("dtype", &P::dtype, "data type of rows and of the projection's weights").one_of("bf16 fp16 fp32"),
            field("precision", &P::precision, "matrix products of fp32 data").one_of("tf32 ieee")),
        StuParams::fields_of<P>(), StuTraining::fields_of<P>(), StuOutputParams::fields_of<P>(),
        std::make_tuple(
            field("silu_u", &P::silu_u, "applies silu to the u that y begins with, with group_norm to both"),
            field("mul_u_activation", &P::mul_u_activation, "what is applied to the u that multiplies")
                .one_of("none sigmoid silu")));
  }
};

// Forward: attn, u (L,H*Dv), x (L,D), output_norm_weight, [output_norm_bias], output_weight, eps, [dropout_ratio, seed
// or seed_tensor, offset], out (L,D), and with training y where it is not computed again. Backward: the same with dout,
// dattn, du and a gradient of each weight; that of x is dout itself.
class HstuComputeOutputSpec final : public ProgramSpec {
 public:
  HstuComputeOutputSpec(const HstuComputeOutputParams& params, Program forward, std::optional<Program> backward)
      : ProgramSpec(std::move(forward), std::move(backward)), params_(params) {}

  std::string_view op() const override { return HstuComputeOutputParams::kOp; }
  nlohmann::ordered_json to_json() const override;

 private:
  const HstuComputeOutputParams params_;
};

}  // namespace hstujit
