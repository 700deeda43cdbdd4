// split_2d_jagged -> hstu.row, which goes through the rows of both sides, or of the left one alone.
#include "compiler/ir/jagged_sides.h"
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/split_2d_jagged/spec.h"

namespace hstujit {

Result<Module> build_split_2d_jagged(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& split = static_cast<const Split2dJaggedSpec&>(spec);
  RowBuilder row(context, split);
  if (split.params().left_only) {
    find_left(row.index(), split.params(), "n_prefix_to_right");
    return row.finish({row.input("values")});
  }
  find_sides(row.index(), split.params(), "n_prefix_to_right");
  return row.finish({row.input("values"), row.input("values")});
}

}  // namespace hstujit
