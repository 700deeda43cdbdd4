// Expressions of one instance: symbols that are known are constants, and what follows from them is folded.
#pragma once

#include "compiler/expression/fold.h"

namespace hstujit {

// The expression with these symbols as constants, folded, each value once, and without negations but of symbols:
// comparisons are turned around, |x| <= y is x <= y and -x <= y, and a boolean choice is made of "and" and "or". So
// intervals and spans decide more of it. Symbols that are left are in their former order; names that it has none of are
// passed over.
Expression bind_symbols(const Expression& expression, const SymbolValues& values);

}  // namespace hstujit
