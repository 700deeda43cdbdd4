#include "compiler/spec/operators/swish_layer_norm/spec.h"

namespace hstujit {

OpSpecPtr parse_swish_layer_norm(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<SwishLayerNormSpec>(json, path, mistakes);
}

Json schema_swish_layer_norm() { return fields_schema<SwishLayerNormParams>(); }

RowInterface SwishLayerNormSpec::forward_interface() const {
  const auto vector = [&](const char* name, const char* doc, double usual) {
    return RowOperand{name, RowOperandKind::kVector, params_.weight_dtype, doc, usual};
  };
  RowInterface interface{params_.width, {}, {}};
  interface.inputs.push_back({"x", RowOperandKind::kRow, params_.dtype, "rows", 0.5});
  if (params_.weight) interface.inputs.push_back(vector("weight", "factor of each column", 1));
  if (params_.bias) interface.inputs.push_back(vector("bias", "added to each column", 0));
  interface.inputs.push_back(RowOperand::scalar("eps", "added to the variance", 1e-5, kNotNegative));
  interface.outputs.push_back({"out", RowOperandKind::kRow, params_.dtype, "result"});
  return interface;
}

}  // namespace hstujit
