// cached_stu_layer: a layer of HSTU on the new rows of each sequence, over cached keys and values (docs/ops-layers.md,
// "cached_stu_layer"). A program.
#pragma once

#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program_spec.h"

namespace hstujit {

struct CachedStuLayerParams : HstuAttentionParams, StuParams, StuInputParams, StuVariantParams, StuOutputParams {
  static constexpr std::string_view kOp = "cached_stu_layer";

  static constexpr auto fields() {
    using P = CachedStuLayerParams;
    return std::tuple_cat(attention_fields_with_products(), StuParams::fields_of<P>(), StuInputParams::bias_field<P>(),
                          StuVariantParams::fields_of<P>(), StuOutputParams::gate_fields<P>());
  }
};

// Forward: x (B*max_delta_len, D), the weights, k_cache (Ll, H*Dqk), v_cache (Ll, H*Dv), kv_caching_offsets (B+1), what
// delta_hstu_attention takes besides q, k and v, eps, out (B*max_delta_len, D), full_k (L, H*Dqk), full_v (L, H*Dv).
class CachedStuLayerSpec final : public ProgramSpec {
 public:
  CachedStuLayerSpec(const CachedStuLayerParams& params, Program forward)
      : ProgramSpec(std::move(forward)), params_(params) {}

  std::string_view op() const override { return CachedStuLayerParams::kOp; }
  nlohmann::ordered_json to_json() const override;

 private:
  const CachedStuLayerParams params_;
};

}  // namespace hstujit
