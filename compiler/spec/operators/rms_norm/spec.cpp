#include "compiler/spec/operators/rms_norm/spec.h"

namespace hstujit {

OpSpecPtr parse_rms_norm(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<RmsNormSpec>(json, path, mistakes);
}

Json schema_rms_norm() { return fields_schema<RmsNormParams>(); }

RowInterface RmsNormSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  interface.inputs.push_back({"x", RowOperandKind::kRow, params_.dtype, "rows", 0.5});
  interface.inputs.back().residual = params_.residual;
  if (params_.weight)
    interface.inputs.push_back({"weight", RowOperandKind::kVector, params_.weight_dtype, "factor of each column", 1});
  interface.inputs.push_back(RowOperand::scalar("eps", "added to the mean square", 1e-5, kNotNegative));
  interface.outputs.push_back({"out", RowOperandKind::kRow, params_.dtype, "result"});
  return interface;
}

double RmsNormSpec::operations(Direction direction) const {
  const double silu = params_.silu ? 4 : 0;
  return direction == Direction::kForward ? 4 + silu : 10 + 3 * silu;
}

}  // namespace hstujit
