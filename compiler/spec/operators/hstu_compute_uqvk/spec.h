// hstu_compute_uqvk: rows normalised and projected to u, v, q and k, of u the silu (docs/ops-layers.md,
// "hstu_compute_uqvk"). A program.
#pragma once

#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program_spec.h"

namespace hstujit {

struct HstuComputeUqvkParams : StuParams, StuTraining, StuVariantParams {
  static constexpr std::string_view kOp = "hstu_compute_uqvk";

  int64_t heads = 1;
  int64_t attn_dim = 0;
  int64_t hidden_dim = 0;
  DataType dtype = DataType::kBf16;
  MatmulPrecision precision = MatmulPrecision::kTf32;  // fp32 data only, canonicalised to tf32 otherwise
  bool uvqk_bias = true;
  bool recompute_normed_x = true;

  static constexpr auto fields() {
    using P = HstuComputeUqvkParams;
    return std::tuple_cat(
        std::make_tuple(
            field("heads", &P::heads, "number of attention heads H", 1, 1024),
            field("attn_dim", &P::attn_dim, "head dimension of q and k", 1, 256),
            field("hidden_dim", &P::hidden_dim, "head dimension of v and u", 1, 256),
            field("dtype", &P::dtype, "data type of rows and of the projection's weights").one_of("bf16 fp16 fp32"),
            field("precision", &P::precision, "matrix products of fp32 data").one_of("tf32 ieee")),
        StuParams::fields_of<P>(), StuTraining::fields_of<P>(), StuInputParams::bias_field<P>(),
        StuVariantParams::silu_field<P>(),
        std::make_tuple(field("recompute_normed_x", &P::recompute_normed_x,
                              "backward normalises x again; forward gives normed_x where it does not")));
  }
};

// Forward: x (L,D), input_norm_weight, [input_norm_bias], uvqk_weight, [uvqk_bias], eps, uvqk (L,P), whose first
// columns, or all of which, have had silu, and with training normed_x where it is not computed again. Backward: the
// same with duvqk (L,P), dx and a gradient of each weight.
class HstuComputeUqvkSpec final : public ProgramSpec {
 public:
  HstuComputeUqvkSpec(const HstuComputeUqvkParams& params, Program forward, std::optional<Program> backward)
      : ProgramSpec(std::move(forward), std::move(backward)), params_(params) {}

  std::string_view op() const override { return HstuComputeUqvkParams::kOp; }
  nlohmann::ordered_json to_json() const override;

 private:
  const HstuComputeUqvkParams params_;
};

}  // namespace hstujit
