// layer_norm: rows less their mean, over their deviation (docs/ops.md, "layer_norm").
#pragma once

#include <tuple>

#include "compiler/spec/row_spec.h"

namespace hstujit {

struct LayerNormParams : RowParams {
  bool weight = true;
  bool bias = true;

  bool operator==(const LayerNormParams&) const = default;

  static constexpr auto fields() {
    using P = LayerNormParams;
    return std::tuple_cat(fields_of<P>(),
                          std::make_tuple(field("weight", &P::weight, "takes a weight, a factor of each column"),
                                          field("bias", &P::bias, "takes a bias, added to each column")));
  }
};

// Forward: x (L,D), [weight (D)], [bias (D)], eps (float), out (L,D). Backward: x, dout (L,D), [weight], eps, dx (L,D),
// [dweight (D)], [dbias (D)].
class LayerNormSpec final : public RowSpec {
 public:
  explicit LayerNormSpec(LayerNormParams params) : params_(std::move(params)) {}

  const LayerNormParams& params() const { return params_; }
  std::string_view op() const override { return "layer_norm"; }
  nlohmann::ordered_json to_json() const override;
  int64_t alignment() const override { return params_.alignment; }
  double operations(Direction direction) const override;

 protected:
  RowInterface forward_interface() const override;
  void reference_row(Direction direction, ReferenceRow& row) const override;

 private:
  LayerNormParams params_;
};

}  // namespace hstujit
