#include "compiler/ir/scores.h"

#include <cmath>

namespace hstujit {

mlir::Value build_score(Ops& ops, std::string_view name, const ScoreArguments& arguments) {
  const mlir::Value s = ops.mulf(arguments.x, arguments.scalars.at("alpha"));
  if (name == "identity") return s;
  if (name == "silu") return ops.silu(s);
  if (name == "sigmoid") return ops.sigmoid(s);
  if (name == "relu") return ops.max_nan(s, ops.real(0));
  if (name == "relu2") {
    const mlir::Value r = ops.max_nan(s, ops.real(0));
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
