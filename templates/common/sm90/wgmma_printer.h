// Prints the wgmma instruction wrappers of the exact shapes a kernel uses.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/plan/attention_config.h"
#include "compiler/spec/operators/hstu_attention/params.h"
#include "compiler/spec/types.h"

namespace hstujit::sm90 {

// kSharedTransposed: stored with its M dimension contiguous.
enum class OperandA { kShared, kSharedTransposed, kRegisters };

// Use of the accumulators: overwritten, D = A B; added to, D = A B + D; or the one or the other, as an argument says.
// kNever tells the compiler that they are read all the same, which keeps them in their registers: forward kernels of
// long rows are 2 % faster. kFresh does not: what is in them may be the result of divergent code, before which the
// compiler would otherwise put an order that serialises all products (C7520).
enum class Accumulate { kNever, kFresh, kAlways, kArgument };

// A product of 64 rows of A, one warpgroup's. Operands in shared memory have the 128-byte swizzle.
struct WgmmaProduct {
  DataType dtype = DataType::kBf16;
  int64_t n = 0;  // columns of D
  int64_t k = 0;  // rounded up to steps of 16: operands are zero past it
  OperandA a = OperandA::kShared;
  int64_t a_rows = 0;       // kShared: rows of the 64-column tiles that A is stored in
  bool transpose_b = true;  // B is stored with its N dimension contiguous
  int64_t b_rows = 0;       // else: rows of the 64-column tiles that B is stored in
  Accumulate accumulate = Accumulate::kAlways;
};

// A struct `name` with issue(accumulators, a, b[, accumulate]): all steps of k in one statement, since the compiler
// takes as long over every operand of a statement as over an instruction. `a` and `b` are as wgmma_operand gives them;
// in registers, `a` is the words of all steps.
std::string print_wgmma(const std::string& name, const WgmmaProduct& product);

// Prints the products that both templates of the backward direction have: ScoreProduct, S; GradientProduct, dP;
// FirstSum, dq or dk; SecondSum, dv. `scores`, `gradients`: of S and dP.
std::string print_backward_products(const HstuAttentionParams& params, const AttentionConfig& config, Accumulate scores,
                                    Accumulate gradients);

}  // namespace hstujit::sm90
