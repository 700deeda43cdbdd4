// The tensors of an operator over rows as a kernel gets them: members of Params, and `struct Operands`, by which the
// kernel finds them.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/launch_plan.h"
#include "compiler/spec/row_spec.h"

namespace hstujit::row {

// Pointers, row strides, scalars, and `rows`, the number of rows.
std::vector<ParamSlot> operand_slots(const RowSpec& spec, Direction direction);

int64_t count_of(const std::vector<RowOperand>& operands, RowOperandKind kind);

// Whether gradients are sums over the rows that found a row of a table.
bool has_table_sums(const RowSpec& spec);
// Whether each sequence finds the table's row of its own number, so that rows come in the order of those that they
// find.
bool finds_in_order(const std::vector<RowOperand>& tables);

std::string print_operands(const RowSpec& spec, Direction direction);

}  // namespace hstujit::row
