#include "compiler/ir/scores.h"

#include <cmath>

#include "compiler/ir/hstu.h"

namespace hstujit {

mlir::Value ScoreArguments::read(Ops& ops, const std::string& operand, mlir::Value position) const {
  const Operand& read = operands.at(operand);
  mlir::OpBuilder& builder = ops.builder();
  const mlir::Type real = builder.getF32Type(), integer = builder.getI64Type();
  const auto type = [&]() -> mlir::Type {
    switch (read.dtype) {
      case DataType::kBf16:
        return builder.getBF16Type();
      case DataType::kFp16:
        return builder.getF16Type();
      case DataType::kInt32:
        return builder.getI32Type();
      default:
        return is_integer(read.dtype) ? integer : real;
    }
  };
  return hstu::ReadOp::create(builder, ops.location(), is_integer(read.dtype) ? integer : real, operand, position,
                              type(), read.heads > 0, read.gradient);
}

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
