// dense_to_jagged -> hstu.row, which goes through the rows of the sequences.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/dense_to_jagged/spec.h"

namespace hstujit {

Result<Module> build_dense_to_jagged(mlir::MLIRContext& context, const OpSpec& spec) {
  RowBuilder row(context, static_cast<const DenseToJaggedSpec&>(spec));
  RowIndex& at = row.index();
  const Dimension dense = Dimension::uniform("max_len");
  at.find("dense", at.row_at(dense, at.position(), at.ops().lt(at.position(), at.rows(dense))));
  return row.finish({row.input("dense")});
}

}  // namespace hstujit
