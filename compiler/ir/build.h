// OpSpec -> IR: one module with one operator of the hstu dialect.
//
// An operator's builder is compiler/ir/operators/<op>.cpp and defines build_<op>; CMake lists them by glob. An operator
// whose kernels call no function of its own, such as a prefix sum, needs none.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/op_spec.h"
#include "compiler/support/status.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace hstujit {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

// A context with every dialect of the project's IR and without threads: one per call, used from one thread.
std::unique_ptr<mlir::MLIRContext> make_context();

// An empty module for an operator that has no builder.
Result<Module> build_module(mlir::MLIRContext& context, const OpSpec& spec);

std::string to_text(mlir::ModuleOp module);

struct OperatorBuilder {
  std::string_view op;
  Result<Module> (*build)(mlir::MLIRContext& context, const OpSpec& spec);
};
const std::vector<OperatorBuilder>& operator_builders();

}  // namespace hstujit
