#include "compiler/spec/operators/add_positional_embeddings/positions.h"

#include <fmt/format.h>

namespace hstujit {

void PositionParams::check(const std::string& path, Mistakes& mistakes) const {
  if (!interleave_targets || num_targets) return;
  const std::string place = join_path(path, "interleave_targets");
  mistakes.check(
      place, Status(Code::kInvalidConfig,
                    fmt::format("{} is true, but num_targets is false; allowed: false, or num_targets=true", place)));
}

RowInterface position_interface(const PositionParams& params) {
  RowInterface interface{params.width, {}, {}};
  RowOperand rows{"seq_embeddings", RowOperandKind::kRow, params.dtype, "embeddings of all sequences' items"};
  rows.in_gradient = false;
  RowOperand table{"position_embeddings_weight", RowOperandKind::kTable, params.weight_dtype,
                   "an embedding of each position"};
  table.in_gradient = false;
  table.rows = Dimension::of("Kp").at_most(kMaxTableRows);
  interface.inputs = {rows, table, RowOperand::scalar("alpha", "factor of seq_embeddings", 1.5, {})};
  interface.outputs = {{"out", RowOperandKind::kRow, params.dtype, "result"}};
  interface.sequences =
      RowSequences{{Dimension::jagged(std::string(kSequenceAxis), "seq_offsets").at_most(kMaxSortedRows)},
                   {offsets_argument("seq_offsets", params.offsets_dtype, kSequenceAxis)}};
  if (params.num_targets)
    interface.sequences->integers.push_back(
        counts_argument("num_targets", params.offsets_dtype, kSequenceAxis, "targets at the end of each sequence"));
  return interface;
}

}  // namespace hstujit
