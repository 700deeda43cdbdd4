// Rows that are those of sequences on the host: work items that are cut at sequences, and the index of hstu.row.
#pragma once

#include <map>
#include <string>

#include "compiler/host/operator.h"
#include "compiler/passes/row_functions.h"
#include "compiler/spec/row_spec.h"

namespace hstujit {

// Rows of one sequence that are gone through: [begin, end), the first of the sequence is `first`.
struct SequencePart {
  int64_t sequence = 0, first = 0, begin = 0, end = 0;
};

// All rows of all sequences, at most `step` in each part. Offsets may hold anything: rows are among the first `rows`,
// and each is in one part at most.
std::vector<SequencePart> sequence_parts(const RowSequences& sequences, const Arguments& arguments, int64_t rows,
                                         int64_t step);

// Emits the index, and returns the rows that it finds for a position of a sequence, by operand.
std::map<std::string, mlir::Value> emit_row_index(ItemFunction& item, const RowFunctions& functions,
                                                  const RowInterface& interface, mlir::Value sequence,
                                                  mlir::Value position);

}  // namespace hstujit
