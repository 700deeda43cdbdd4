// hstu_attention: jagged attention with a pointwise score instead of softmax (docs/ops-attention.md, "hstu_attention").
#pragma once

#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

class HstuAttentionSpec final : public AttentionSpec {
 public:
  explicit HstuAttentionSpec(HstuAttentionParams params) : AttentionSpec(std::move(params), QueryRows::kAll) {}

  std::string_view op() const override { return "hstu_attention"; }
  nlohmann::ordered_json to_json() const override;
};

}  // namespace hstujit
