// Short names for the arith and math operations that builders and passes create.
#pragma once

#include <optional>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace hstujit {

// The value of an index constant.
inline std::optional<int64_t> constant_index(mlir::Value value) {
  llvm::APInt constant;
  if (!mlir::matchPattern(value, mlir::m_ConstantInt(&constant))) return std::nullopt;
  return constant.getSExtValue();
}

class Ops {
 public:
  using Value = mlir::Value;

  Ops(mlir::OpBuilder& builder, mlir::Location location) : builder_(builder), location_(location) {}

  mlir::OpBuilder& builder() { return builder_; }
  mlir::Location location() const { return location_; }

  // index
  Value integer(int64_t value) { return mlir::arith::ConstantIndexOp::create(builder_, location_, value); }
  Value add(Value a, Value b) { return make<mlir::arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return make<mlir::arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return make<mlir::arith::MulIOp>(a, b); }
  Value div(Value a, Value b) { return make<mlir::arith::DivSIOp>(a, b); }
  Value floor_div(Value a, Value b) { return make<mlir::arith::FloorDivSIOp>(a, b); }
  Value max(Value a, Value b) { return make<mlir::arith::MaxSIOp>(a, b); }
  Value min(Value a, Value b) { return make<mlir::arith::MinSIOp>(a, b); }
  Value abs(Value a) { return make<mlir::math::AbsIOp>(a); }
  Value neg(Value a) { return sub(integer(0), a); }

  // i1
  Value truth(bool value) { return mlir::arith::ConstantOp::create(builder_, location_, builder_.getBoolAttr(value)); }
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b) {
    return mlir::arith::CmpIOp::create(builder_, location_, predicate, a, b);
  }
  Value eq(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::eq, a, b); }
  Value ne(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::ne, a, b); }
  Value lt(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::slt, a, b); }
  Value le(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::sle, a, b); }
  Value gt(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::sgt, a, b); }
  Value ge(Value a, Value b) { return compare(mlir::arith::CmpIPredicate::sge, a, b); }
  Value both(Value a, Value b) { return make<mlir::arith::AndIOp>(a, b); }
  Value either(Value a, Value b) { return make<mlir::arith::OrIOp>(a, b); }
  Value negate(Value a) { return make<mlir::arith::XOrIOp>(a, truth(true)); }
  Value select(Value condition, Value a, Value b) { return make<mlir::arith::SelectOp>(condition, a, b); }

  // f32
  Value real(double value) {
    return mlir::arith::ConstantOp::create(builder_, location_, builder_.getF32FloatAttr(static_cast<float>(value)));
  }
  // For every element, where `type` is a vector.
  Value real(double value, mlir::Type type) {
    const auto vector = mlir::dyn_cast<mlir::VectorType>(type);
    if (!vector) return real(value);
    const auto elements = mlir::DenseElementsAttr::get(vector, static_cast<float>(value));
    return mlir::arith::ConstantOp::create(builder_, location_, elements);
  }
  Value addf(Value a, Value b) { return make<mlir::arith::AddFOp>(a, b); }
  Value subf(Value a, Value b) { return make<mlir::arith::SubFOp>(a, b); }
  Value mulf(Value a, Value b) { return make<mlir::arith::MulFOp>(a, b); }
  Value divf(Value a, Value b) { return make<mlir::arith::DivFOp>(a, b); }
  Value negf(Value a) { return make<mlir::arith::NegFOp>(a); }
  Value absf(Value a) { return make<mlir::math::AbsFOp>(a); }
  // The other one where one is NaN.
  Value maxf(Value a, Value b) { return make<mlir::arith::MaxNumFOp>(a, b); }
  Value minf(Value a, Value b) { return make<mlir::arith::MinNumFOp>(a, b); }
  // NaN where one is NaN.
  Value max_nan(Value a, Value b) { return make<mlir::arith::MaximumFOp>(a, b); }
  Value min_nan(Value a, Value b) { return make<mlir::arith::MinimumFOp>(a, b); }
  Value floor(Value a) { return make<mlir::math::FloorOp>(a); }
  Value pow(Value a, Value b) { return make<mlir::math::PowFOp>(a, b); }
  Value log2(Value a) { return make<mlir::math::Log2Op>(a); }
  Value sin(Value a) { return make<mlir::math::SinOp>(a); }
  Value cos(Value a) { return make<mlir::math::CosOp>(a); }
  Value sqrt(Value a) { return make<mlir::math::SqrtOp>(a); }
  Value log(Value a) { return make<mlir::math::LogOp>(a); }
  // An index as a real number, and the integer part of one.
  Value to_real(Value a) {
    const Value integer = mlir::arith::IndexCastOp::create(builder_, location_, builder_.getI64Type(), a);
    return mlir::arith::SIToFPOp::create(builder_, location_, builder_.getF32Type(), integer);
  }
  Value to_integer(Value a) {
    const Value integer = mlir::arith::FPToSIOp::create(builder_, location_, builder_.getI64Type(), a);
    return mlir::arith::IndexCastOp::create(builder_, location_, builder_.getIndexType(), integer);
  }
  // The same of those that fit into 32 bits.
  Value int_to_real(Value a) {
    const Value integer = mlir::arith::IndexCastOp::create(builder_, location_, builder_.getI32Type(), a);
    return mlir::arith::SIToFPOp::create(builder_, location_, builder_.getF32Type(), integer);
  }
  Value to_int(Value a) {
    const Value integer = mlir::arith::FPToSIOp::create(builder_, location_, builder_.getI32Type(), a);
    return mlir::arith::IndexCastOp::create(builder_, location_, builder_.getIndexType(), integer);
  }
  // Between indices and integers of 64 bits, whose value the narrower of a kernel has room for.
  Value widened(Value a) { return mlir::arith::IndexCastOp::create(builder_, location_, builder_.getI64Type(), a); }
  Value narrowed(Value a) { return mlir::arith::IndexCastOp::create(builder_, location_, builder_.getIndexType(), a); }
  Value wide_to_real(Value a) { return mlir::arith::SIToFPOp::create(builder_, location_, builder_.getF32Type(), a); }
  Value compare(mlir::arith::CmpFPredicate predicate, Value a, Value b) {
    return mlir::arith::CmpFOp::create(builder_, location_, predicate, a, b);
  }
  Value gtf(Value a, Value b) { return compare(mlir::arith::CmpFPredicate::OGT, a, b); }
  Value lef(Value a, Value b) { return compare(mlir::arith::CmpFPredicate::OLE, a, b); }
  Value gef(Value a, Value b) { return compare(mlir::arith::CmpFPredicate::OGE, a, b); }
  Value fma(Value a, Value b, Value c) { return make<mlir::math::FmaOp>(a, b, c); }
  Value tanh(Value a) { return make<mlir::math::TanhOp>(a); }
  Value exp(Value a) { return make<mlir::math::ExpOp>(a); }
  Value erf(Value a) { return make<mlir::math::ErfOp>(a); }
  Value rsqrt(Value a) { return make<mlir::math::RsqrtOp>(a); }
  // By one tanh: 0.5 + 0.5 * tanh(a / 2), one special-function instruction. No infinity is on the way for any finite a,
  // so neither the value nor the derivative can become NaN. silu is a * sigmoid(a).
  Value sigmoid(Value a) {
    const Value half = real(0.5, a.getType());
    return fma(half, tanh(mulf(a, half)), half);
  }
  Value silu(Value a) {
    const Value half = mulf(a, real(0.5, a.getType()));
    return fma(half, tanh(half), half);
  }

 private:
  template <typename Op, typename... Operands>
  Value make(Operands... operands) {
    return Op::create(builder_, location_, operands...);
  }

  mlir::OpBuilder& builder_;
  mlir::Location location_;
};

}  // namespace hstujit
