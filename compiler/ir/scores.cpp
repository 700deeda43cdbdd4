#include "compiler/ir/scores.h"

#include <cmath>
#include <limits>
#include <vector>

#include "compiler/ir/expression.h"
#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"

namespace hstujit {

namespace {

// A position of 64 bits as an index, which has 32 bits where scores are computed: the nearest that is as good, behind
// the end of what is read or before its begin.
mlir::Value index_of(Ops& ops, mlir::Value position) {
  mlir::OpBuilder& builder = ops.builder();
  if (position.getType().isIndex()) return position;
  const auto constant = [&](int64_t value) {
    return mlir::arith::ConstantOp::create(builder, ops.location(), builder.getI64IntegerAttr(value));
  };
  const mlir::Value nearest = ops.max(ops.min(position, constant(std::numeric_limits<int32_t>::max())), constant(-1));
  return mlir::arith::IndexCastOp::create(builder, ops.location(), builder.getIndexType(), nearest);
}

}  // namespace

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
  const bool by_head = read.varies_by_head(heads) && read.kind != &head_kind();
  return hstu::ReadOp::create(builder, ops.location(), is_integer(read.dtype) ? integer : real, operand,
                              llvm::StringRef(read.kind->name), index_of(ops, position), type(), by_head,
                              by_head ? heads / read.heads : 1, read.entries, read.gradient);
}

namespace {

using mlir::Value;

// Integers whose powers are products: powf of a base that may be negative is some fifty instructions and branches.
bool is_small_power(double exponent) {
  constexpr double kMost = 32;
  return std::abs(exponent) <= kMost && exponent == std::floor(exponent);
}

Value power(Ops& ops, Value base, int exponent) {
  if (exponent < 0) return ops.divf(ops.real(1), power(ops, base, -exponent));
  if (exponent == 0) return ops.real(1);
  if (exponent == 1) return base;
  const Value half = power(ops, base, exponent / 2), whole = ops.mulf(half, half);
  return exponent % 2 == 0 ? whole : ops.mulf(whole, base);
}

Value gelu(Ops& ops, Value a) {
  const Value h = ops.mulf(a, ops.real(0.5));
  return ops.fma(h, ops.erf(ops.mulf(a, ops.real(std::sqrt(0.5)))), h);
}

Value hardswish(Ops& ops, Value a) {
  const Value gate = ops.min_nan(ops.max_nan(ops.addf(a, ops.real(3)), ops.real(0)), ops.real(6));
  return ops.mulf(a, ops.mulf(gate, ops.real(1.0 / 6)));
}

// NaN becomes the least, and so does what is below it.
Value integer_part(Ops& ops, Value a) {
  constexpr auto kMost = static_cast<double>(kLargestInt);
  return ops.to_int(ops.minf(ops.maxf(a, ops.real(-kMost)), ops.real(kMost)));
}

// Limits the integer to kLargestInt, of either sign.
Value narrowed(Ops& ops, Value a) {
  const Value most = ops.widened(ops.integer(kLargestInt)), least = ops.widened(ops.integer(-kLargestInt));
  return ops.narrowed(ops.min(ops.max(a, least), most));
}

class ScoreBuilding {
 public:
  ScoreBuilding(Ops& ops, const Expression& score, int64_t heads, const ScoreArguments& arguments)
      : ops_(ops), score_(score), heads_(heads), arguments_(arguments) {}

  Value build() {
    for (const Expression::Node& node : score_.nodes()) values_.push_back(value_of(node));
    return values_[static_cast<size_t>(score_.root())];
  }

 private:
  Value operand(const Expression::Node& node, size_t i) const {
    return node.operands[i] < 0 ? Value() : values_[static_cast<size_t>(node.operands[i])];
  }

  Value value_of(const Expression::Node& node) {
    Value a = operand(node, 0), b = operand(node, 1), c = operand(node, 2);
    const bool of_reals = node.operands[0] >= 0 && score_.node(node.operands[0]).real;
    if (node.op == Operator::kSymbol) return symbol(score_.symbols()[static_cast<size_t>(node.value)].name);
    if (node.op == Operator::kConstant && node.real) return ops_.real(node.number);
    if (node.op == Operator::kRead) return read(node, a);
    if (node.op == Operator::kCall) return call(node, a, b);
    if (of_reals) return real(node.op, a, b);
    make_alike(a, b, c);
    return build_node(ops_, node, a, b, c);
  }

  // Integers of positions beside one of 64 bits have as many.
  void make_alike(Value& a, Value& b, Value& c) {
    const auto is_wide = [](Value value) { return value && value.getType().isInteger(64); };
    if (!is_wide(a) && !is_wide(b) && !is_wide(c)) return;
    for (Value* const value : {&a, &b, &c}) {
      if (*value && value->getType().isIndex()) *value = ops_.widened(*value);
    }
  }

  Value read(const Expression::Node& node, Value index) {
    const std::string& name = score_.symbols()[static_cast<size_t>(node.value)].name;
    if (!index) index = arguments_.operands.at(name).kind == &head_kind() ? arguments_.head : ops_.integer(0);
    return arguments_.read(ops_, name, index);
  }

  Value symbol(const std::string& name) {
    if (name == "x") {
      if (!x_) x_ = ops_.mulf(arguments_.x, arguments_.scalars.at("alpha"));
      return x_;
    }
    if (name == "row") return arguments_.row;
    if (name == "col" || name == "column") return arguments_.col;
    if (name == "n") return arguments_.n;
    if (name == "targets" || name == "t") return arguments_.t;
    if (name == "head") return arguments_.head;
    return name == "heads" ? ops_.integer(heads_) : arguments_.scalars.at(name);
  }

  // An operator of two real numbers, or of one.
  Value real(Operator op, Value a, Value b) {
    using Predicate = mlir::arith::CmpFPredicate;
    switch (op) {
      case Operator::kAdd:
        return ops_.addf(a, b);
      case Operator::kSub:
        return ops_.subf(a, b);
      case Operator::kMul:
        return ops_.mulf(a, b);
      case Operator::kMax:
        return ops_.max_nan(a, b);
      case Operator::kMin:
        return ops_.min_nan(a, b);
      case Operator::kAbs:
        return ops_.absf(a);
      case Operator::kEq:
        return ops_.compare(Predicate::OEQ, a, b);
      case Operator::kLt:
        return ops_.compare(Predicate::OLT, a, b);
      case Operator::kLe:
        return ops_.lef(a, b);
      case Operator::kGt:
        return ops_.gtf(a, b);
      case Operator::kGe:
        return ops_.gef(a, b);
      default:
        return {};
    }
  }

  // A magnitude is that of the real number, where it takes no instruction.
  Value wide_to_real(const Expression::Node& node, Value a) {
    const Expression::Node& integer = score_.node(node.operands[0]);
    if (integer.op != Operator::kAbs) return ops_.wide_to_real(a);
    return ops_.absf(ops_.wide_to_real(values_[static_cast<size_t>(integer.operands[0])]));
  }

  Value raised(const Expression::Node& node, Value a, Value b) {
    const Expression::Node& exponent = score_.node(node.operands[1]);
    if (exponent.op == Operator::kConstant && is_small_power(exponent.number))
      return power(ops_, a, static_cast<int>(exponent.number));
    if (exponent.op == Operator::kConstant && exponent.number == 0.5) return ops_.sqrt(a);
    const bool positive = is_positive(score_, node.operands[0]);
    if (exponent.op == Operator::kConstant && exponent.number == -0.5 && positive) return ops_.rsqrt(a);
    const Value power_of_a = ops_.pow(a, b);
    // A fraction as a power of a base below 0 is NaN, as is the base's logarithm.
    const bool fraction = exponent.op == Operator::kConstant && exponent.number != std::floor(exponent.number);
    if (positive || fraction) power_of_a.getDefiningOp()->setAttr(kPositiveBase, ops_.builder().getUnitAttr());
    return power_of_a;
  }

  Value call(const Expression::Node& node, Value a, Value b) {
    switch (node.function) {
      case Function::kReal:
        return a.getType().isIndex() ? ops_.int_to_real(a) : wide_to_real(node, a);
      case Function::kNegate:
        return ops_.negf(a);
      case Function::kDivide:
        return ops_.divf(a, b);
      case Function::kInt:
        return a.getType().isInteger(64) ? narrowed(ops_, a) : integer_part(ops_, a);
      case Function::kFloor:
        return ops_.floor(a);
      case Function::kExp:
        return ops_.exp(a);
      case Function::kLog:
        return ops_.log(a);
      case Function::kLog2:
        return ops_.log2(a);
      case Function::kSqrt:
        return ops_.sqrt(a);
      case Function::kPow:
        return raised(node, a, b);
      case Function::kSin:
        return ops_.sin(a);
      case Function::kCos:
        return ops_.cos(a);
      case Function::kTanh:
        return ops_.tanh(a);
      case Function::kSigmoid:
        return ops_.sigmoid(a);
      case Function::kSilu:
        return ops_.silu(a);
      case Function::kGelu:
        return gelu(ops_, a);
      case Function::kRelu:
        return ops_.max_nan(a, ops_.real(0));
      case Function::kLeakyRelu:
        return ops_.select(ops_.gtf(a, ops_.real(0)), a, ops_.mulf(a, b));
      case Function::kHardswish:
        return hardswish(ops_, a);
      case Function::kNone:
        break;
    }
    return {};
  }

  Ops& ops_;
  const Expression& score_;
  int64_t heads_;
  const ScoreArguments& arguments_;
  Value x_;
  std::vector<Value> values_;
};

}  // namespace

Value build_score(Ops& ops, const Expression& score, int64_t heads, const ScoreArguments& arguments) {
  const Value y = ScoreBuilding(ops, score, heads, arguments).build();
  if (score_is_finite(score)) return y;
  const auto within = [&](Value position) {
    return ops.both(ops.ge(position, ops.integer(0)), ops.lt(position, arguments.n));
  };
  return ops.select(ops.both(within(arguments.row), within(arguments.col)), y, ops.real(0));
}

Value build_condition(Ops& ops, const Expression& mask, const ScoreArguments& arguments) {
  return ScoreBuilding(ops, mask, arguments.heads, arguments).build();
}

}  // namespace hstujit
