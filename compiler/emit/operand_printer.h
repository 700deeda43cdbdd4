// The operands of an instance of attention as CUDA: structs of Spec, which say where a kernel's parameters have them.
#pragma once

#include <string>

#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "mlir/IR/BuiltinOps.h"

namespace hstujit {

// Members of Spec. `Bias` and `Factors` are there in every instance; with kHeads 0, and kPresent false, it has none.
// `Tensor`, and in backward `Gradient` and `Before` where there are such, are functions of Params: the address, and a
// stride for every axis but the last.
std::string print_operands(const AttentionSpec& spec, Direction direction);

// For each operand whose gradient is a sum of slopes of the score, the struct Operand::slopes_struct(): those slopes,
// which are region functions of `module`, and where the sums go. Empty where the instance has none.
std::string print_slopes(const AttentionSpec& spec, mlir::ModuleOp module);

// The same of gradients that are sums over all pairs (OperandSums): structs of what the score reads, of where it does,
// which are region functions of `module`, and ScoreSites, which lists them for
// templates/attention/operands/gradients/tables.cuh. Empty where the instance has none.
std::string print_sites(const AttentionSpec& spec, mlir::ModuleOp module);

}  // namespace hstujit
