#include "compiler/ir/positions.h"

namespace hstujit {

HistoryPosition history_position(RowIndex& at, const PositionParams& params) {
  Ops& ops = at.ops();
  mlir::Value high = at.rows(Dimension::jagged(std::string(kSequenceAxis), "seq_offsets"));
  if (params.num_targets) {
    const mlir::Value targets = at.element("num_targets", at.sequence());
    high = ops.sub(high, ops.mul(targets, ops.integer(params.target_rows())));
  }
  return {high, ops.min(at.position(), high)};
}

}  // namespace hstujit
