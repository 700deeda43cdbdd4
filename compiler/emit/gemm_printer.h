// Prints what a kernel of the gemm family does to an element of a product: `struct Epilogue`.
#pragma once

#include <string>

#include "compiler/emit/region_printer.h"
#include "compiler/spec/gemm_spec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hstujit {

// `epilogue`: the function of that name which the passes leave. Its functions are those of the special function unit,
// but for fp32 results, which they are not precise enough for.
Result<std::string> print_epilogue(mlir::func::FuncOp epilogue, const GemmSpec& spec);

}  // namespace hstujit
