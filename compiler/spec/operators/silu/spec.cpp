#include "compiler/spec/operators/silu/spec.h"

namespace hstujit {

OpSpecPtr parse_silu(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<SiluSpec>(json, path, mistakes);
}

Json schema_silu() { return fields_schema<SiluParams>(); }

RowInterface SiluSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  interface.inputs = {{"x", RowOperandKind::kRow, params_.dtype, "rows"}};
  interface.inputs[0].gradient_in_place = true;  // a layer's backward has less memory by it
  interface.outputs = {{"out", RowOperandKind::kRow, params_.dtype, "result"}};
  return interface;
}

}  // namespace hstujit
