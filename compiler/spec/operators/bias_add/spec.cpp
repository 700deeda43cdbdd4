#include "compiler/spec/operators/bias_add/spec.h"

namespace hstujit {

OpSpecPtr parse_bias_add(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<BiasAddSpec>(json, path, mistakes);
}

Json schema_bias_add() { return fields_schema<BiasAddParams>(); }

RowInterface BiasAddSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  RowOperand x{"x", RowOperandKind::kRow, params_.dtype, "rows"};
  x.in_gradient = x.differentiated = false;
  RowOperand bias{"bias", RowOperandKind::kVector, params_.weight_dtype, "added to each row"};
  bias.in_gradient = false;
  interface.inputs = {x, bias, RowOperand::scalar("beta", "factor of bias", 1, {})};
  interface.outputs = {{"out", RowOperandKind::kRow, params_.dtype, "result"}};
  return interface;
}

}  // namespace hstujit
