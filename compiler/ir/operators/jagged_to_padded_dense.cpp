// jagged_to_padded_dense -> hstu.row, which goes through the rows of the padded tensor.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/jagged_to_padded_dense/spec.h"

namespace hstujit {

Result<Module> build_jagged_to_padded_dense(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& padded = static_cast<const JaggedToPaddedDenseSpec&>(spec);
  RowBuilder row(context, padded);
  RowIndex& at = row.index();
  const Dimension jagged = Dimension::jagged(std::string(kSequenceAxis), "seq_offsets");
  at.find("values", at.row_at(jagged, at.position(), at.ops().lt(at.position(), at.rows(jagged))));
  return row.finish({row.input("values")});
}

}  // namespace hstujit
