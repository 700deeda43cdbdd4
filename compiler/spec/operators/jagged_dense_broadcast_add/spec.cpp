#include "compiler/spec/operators/jagged_dense_broadcast_add/spec.h"

namespace hstujit {

OpSpecPtr parse_jagged_dense_broadcast_add(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<JaggedDenseBroadcastAddSpec>(json, path, mistakes);
}
Json schema_jagged_dense_broadcast_add() { return fields_schema<SequenceParams>(); }

RowInterface JaggedDenseBroadcastAddSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  RowOperand jagged{"jagged", RowOperandKind::kRow, params_.dtype, "rows of all sequences"};
  jagged.in_gradient = jagged.differentiated = false;
  RowOperand dense{"dense", RowOperandKind::kTable, params_.dtype, "added to all rows of a sequence"};
  dense.in_gradient = false;
  dense.rows = Dimension::of("B");
  interface.inputs = {jagged, dense};
  interface.outputs = {{"out", RowOperandKind::kRow, params_.dtype, "result"}};
  interface.sequences =
      RowSequences{{Dimension::jagged(std::string(kSequenceAxis), "seq_offsets").at_most(kMaxSortedRows)},
                   {offsets_argument("seq_offsets", params_.offsets_dtype, kSequenceAxis)}};
  return interface;
}

}  // namespace hstujit
