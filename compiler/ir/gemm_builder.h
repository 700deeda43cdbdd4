// Functions by which builders of the gemm family write IR: hstu.gemm, whose epilogue makes an element of the result of
// one of the product.
#pragma once

#include <functional>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/ops.h"
#include "compiler/spec/gemm_spec.h"

namespace hstujit {

// The element of the result; `column` where the interface takes it, `operands` in its order.
using EpilogueBuilder = std::function<mlir::Value(Ops& ops, mlir::Value accumulator, mlir::Value column,
                                                  const std::vector<mlir::Value>& operands)>;

Result<Module> build_gemm(mlir::MLIRContext& context, const GemmSpec& spec, const EpilogueBuilder& epilogue);

}  // namespace hstujit
