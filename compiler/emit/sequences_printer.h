// `struct Sequences` of generated source: where rows that are those of sequences are (templates/row/sequences.cuh).
#pragma once

#include <string>

#include "compiler/passes/row_functions.h"
#include "compiler/spec/row_spec.h"
#include "compiler/support/status.h"

namespace hstujit {

// The index as a function, and the struct that calls it; empty for an operator whose rows are of no sequences.
Result<std::string> print_sequences(const RowFunctions& functions, const RowInterface& interface);

}  // namespace hstujit
