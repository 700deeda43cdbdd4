// Where in its history a row is, as both operators over positions have it.
#pragma once

#include "compiler/ir/row_index.h"
#include "compiler/spec/operators/add_positional_embeddings/positions.h"

namespace hstujit {

struct HistoryPosition {
  mlir::Value high;      // position of the first target
  mlir::Value position;  // the row's own; of targets the first one's
};

HistoryPosition history_position(RowIndex& at, const PositionParams& params);

}  // namespace hstujit
