#include "compiler/spec/operators/layer_norm/spec.h"

namespace hstujit {

OpSpecPtr parse_layer_norm(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<LayerNormSpec>(json, path, mistakes);
}

Json schema_layer_norm() { return fields_schema<LayerNormParams>(); }

RowInterface LayerNormSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  interface.inputs.push_back({"x", RowOperandKind::kRow, params_.dtype, "rows", 0.5});
  interface.inputs.back().residual = params_.residual;
  if (params_.weight)
    interface.inputs.push_back({"weight", RowOperandKind::kVector, params_.weight_dtype, "factor of each column", 1});
  if (params_.bias) {
    interface.inputs.push_back({"bias", RowOperandKind::kVector, params_.weight_dtype, "added to each column", 0,
                                /*in_gradient=*/false});
  }
  interface.inputs.push_back(RowOperand::scalar("eps", "added to the variance", 1e-5, kNotNegative));
  interface.outputs.push_back({"out", RowOperandKind::kRow, params_.dtype, "result"});
  return interface;
}

double LayerNormSpec::operations(Direction direction) const { return direction == Direction::kForward ? 7 : 14; }

}  // namespace hstujit
