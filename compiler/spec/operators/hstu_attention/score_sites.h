// Where a score reads tables, elements of heads and scalars with gradients (Operand::has_sites): what follows from
// there for how kernels add those up.
#pragma once

#include <vector>

#include "compiler/expression/expression.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"

namespace hstujit {

// Whether all that it reads there is added to x before anything else becomes of the sum: the derivative with respect to
// what is read is then that with respect to x, times a number that does not depend on x. True only where there is such
// an operand.
bool sites_add_to_x(const Expression& score, const std::vector<Operand>& operands);

// Whether the entry of such a table follows from what the score reads elsewhere, such as times of rows.
bool site_entries_read(const Expression& score, const std::vector<Operand>& operands);

// Whether all that it reads there is in the part that heads share (shared_value.h): kernels then add up over the heads
// what that part's derivative is multiplied by, before they look at what is read.
bool sites_are_shared(const Expression& score, const std::vector<Operand>& operands);

}  // namespace hstujit
