// concat_2d_jagged -> hstu.row, which goes through the rows of both sides.
#include "compiler/ir/jagged_sides.h"
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/concat_2d_jagged/spec.h"

namespace hstujit {

Result<Module> build_concat_2d_jagged(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& concat = static_cast<const Concat2dJaggedSpec&>(spec);
  RowBuilder row(context, concat);
  find_sides(row.index(), concat.params(), "n_prefix_from_right");
  return row.finish({row.ops().addf(row.input("left"), row.input("right"))});
}

}  // namespace hstujit
