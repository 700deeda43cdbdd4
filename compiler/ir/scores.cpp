#include "compiler/ir/scores.h"

#include <cmath>

namespace hstujit {

// sigmoid and silu are written with tanh: sigmoid(s) = 0.5 + 0.5 * tanh(s / 2). One special-function instruction, and
// no infinity on the way for any finite s, so neither the value nor the derivative can become NaN.
mlir::Value build_score(Ops& ops, std::string_view name, const ScoreArguments& arguments) {
  const mlir::Value s = ops.mulf(arguments.x, arguments.scalars.at("alpha"));
  if (name == "identity") return s;
  if (name == "silu") {
    const mlir::Value h = ops.mulf(s, ops.real(0.5));
    return ops.fma(h, ops.tanh(h), h);
  }
  if (name == "sigmoid") {
    const mlir::Value half = ops.real(0.5);
    return ops.fma(half, ops.tanh(ops.mulf(s, half)), half);
  }
  if (name == "relu") return ops.maxf(s, ops.real(0));
  if (name == "relu2") {
    const mlir::Value r = ops.maxf(s, ops.real(0));
    return ops.mulf(r, r);
  }
  if (name == "tanh") return ops.tanh(s);
  if (name == "gelu") {
    const mlir::Value h = ops.mulf(s, ops.real(0.5));
    return ops.fma(h, ops.erf(ops.mulf(s, ops.real(std::sqrt(0.5)))), h);
  }
  return {};
}

}  // namespace hstujit
