// The functions of hstu.row as CUDA, and `struct Row`, through which templates/row/ calls them by number.
#pragma once

#include <string>

#include "compiler/emit/region_printer.h"
#include "compiler/passes/row_functions.h"
#include "compiler/spec/row_spec.h"

namespace hstujit {

// kInternal when the functions and the interface do not fit each other: what a function takes is no input, or nothing
// reads an input.
Result<std::string> print_row(const RowFunctions& functions, const RowInterface& interface, Activation activation);

}  // namespace hstujit
