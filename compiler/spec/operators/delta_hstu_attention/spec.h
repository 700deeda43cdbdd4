// delta_hstu_attention: attention of the last rows of each sequence over all of its rows, for inference with cached
// keys and values, and for losses of the last rows alone (docs/ops-attention.md, "delta_hstu_attention").
#pragma once

#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

struct DeltaHstuAttentionParams : HstuAttentionParams {
  bool jagged_queries = false;

  static constexpr auto fields() {
    return std::tuple_cat(
        HstuAttentionParams::fields(),
        std::make_tuple(field("jagged_queries", &DeltaHstuAttentionParams::jagged_queries,
                              "launches take seq_offsets_q: sequences may have different numbers of rows in q")));
  }
};

class DeltaHstuAttentionSpec final : public AttentionSpec {
 public:
  explicit DeltaHstuAttentionSpec(const DeltaHstuAttentionParams& params)
      : AttentionSpec(params, params.jagged_queries ? QueryRows::kLastJagged : QueryRows::kLast) {}

  std::string_view op() const override { return "delta_hstu_attention"; }
  nlohmann::ordered_json to_json() const override;
};

}  // namespace hstujit
