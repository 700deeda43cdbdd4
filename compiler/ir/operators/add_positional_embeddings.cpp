// add_positional_embeddings -> hstu.row.
#include "compiler/ir/positions.h"
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/add_positional_embeddings/spec.h"

namespace hstujit {

Result<Module> build_add_positional_embeddings(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& positional = static_cast<const AddPositionalEmbeddingsSpec&>(spec);
  RowBuilder row(context, positional);
  RowIndex& at = row.index();
  const mlir::Value history = history_position(at, positional.params()).position;
  at.find("position_embeddings_weight", at.clamped(history, "position_embeddings_weight"));
  Ops& ops = row.ops();
  const mlir::Value scaled = ops.mulf(row.input("seq_embeddings"), row.splat(row.input("alpha")));
  return row.finish({ops.addf(scaled, row.input("position_embeddings_weight"))});
}

}  // namespace hstujit
