// Evaluates region functions of the IR on the host, op by op, independent of every backend.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <vector>

#include "compiler/ir/hstu.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace hstujit {

// A function translated once into a list of steps, so that millions of points can be evaluated. index and i1 are
// evaluated as int64_t, f32 as float or, to measure derivatives, as double.
template <typename Real = float>
class Evaluator {
 public:
  explicit Evaluator(mlir::func::FuncOp function) {
    for (const mlir::Value argument : function.getArguments()) {
      slot(argument);
      real_.push_back(argument.getType().isF32());
    }
    for (mlir::Operation& op : function.getBody().front().without_terminator()) translate(op);
    for (const mlir::Value value : function.getBody().front().getTerminator()->getOperands())
      results_.push_back(slot(value));
    values_.resize(slots_.size());
  }

  std::vector<int64_t> integers(std::initializer_list<int64_t> arguments) {
    size_t i = 0;
    for (const int64_t argument : arguments) values_[i++].integer = argument;
    run();
    std::vector<int64_t> out;
    for (const size_t result : results_) out.push_back(values_[result].integer);
    return out;
  }
  // The largest magnitude of an integer, constants included, in all evaluations so far.
  int64_t largest_integer() const { return largest_; }
  // An argument that is an integer is given as a real number, too.
  std::vector<Real> reals(const std::vector<Real>& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i)
      values_[i] = real_[i] ? real(arguments[i]) : integer(static_cast<int64_t>(arguments[i]));
    run();
    std::vector<Real> out;
    for (const size_t result : results_) out.push_back(values_[result].real);
    return out;
  }

 private:
  struct Number {
    int64_t integer = 0;
    Real real = 0;
  };
  using Function = Number (*)(const Number& a, const Number& b, const Number& c);
  struct Step {
    Function function;
    size_t operands[3];
    size_t result;
  };

  size_t slot(mlir::Value value) { return slots_.try_emplace(value.getAsOpaquePointer(), slots_.size()).first->second; }

  void run() {
    for (const auto& [place, value] : constants_) values_[place] = value;
    for (const Step& step : steps_) {
      Number& result = values_[step.result];
      result = step.function(values_[step.operands[0]], values_[step.operands[1]], values_[step.operands[2]]);
      largest_ = std::max(largest_, std::abs(result.integer));
    }
  }

  static Number integer(int64_t value) { return {value, 0}; }
  static Number real(Real value) { return {0, value}; }
  static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

  static Function compare(mlir::arith::CmpIPredicate predicate) {
    using P = mlir::arith::CmpIPredicate;
    using N = const Number&;
    switch (predicate) {
      case P::eq:
        return [](N a, N b, N) { return integer(a.integer == b.integer); };
      case P::ne:
        return [](N a, N b, N) { return integer(a.integer != b.integer); };
      case P::slt:
        return [](N a, N b, N) { return integer(a.integer < b.integer); };
      case P::sle:
        return [](N a, N b, N) { return integer(a.integer <= b.integer); };
      case P::sgt:
        return [](N a, N b, N) { return integer(a.integer > b.integer); };
      case P::sge:
        return [](N a, N b, N) { return integer(a.integer >= b.integer); };
      case P::ult:
        return [](N a, N b, N) { return integer(static_cast<uint64_t>(a.integer) < static_cast<uint64_t>(b.integer)); };
      case P::ule:
        return
            [](N a, N b, N) { return integer(static_cast<uint64_t>(a.integer) <= static_cast<uint64_t>(b.integer)); };
      case P::ugt:
        return [](N a, N b, N) { return integer(static_cast<uint64_t>(a.integer) > static_cast<uint64_t>(b.integer)); };
      case P::uge:
        return
            [](N a, N b, N) { return integer(static_cast<uint64_t>(a.integer) >= static_cast<uint64_t>(b.integer)); };
    }
    return nullptr;
  }

  static Function function_of(mlir::Operation& op) {
    namespace arith = mlir::arith;
    namespace math = mlir::math;
    using N = const Number&;
    return llvm::TypeSwitch<mlir::Operation*, Function>(&op)
        .Case([](arith::CmpIOp cmp) { return compare(cmp.getPredicate()); })
        .Case([](arith::AddIOp) -> Function { return [](N a, N b, N) { return integer(a.integer + b.integer); }; })
        .Case([](arith::SubIOp) -> Function { return [](N a, N b, N) { return integer(a.integer - b.integer); }; })
        .Case([](arith::MulIOp) -> Function { return [](N a, N b, N) { return integer(a.integer * b.integer); }; })
        .Case([](arith::DivSIOp) -> Function { return [](N a, N b, N) { return integer(a.integer / b.integer); }; })
        .Case([](arith::RemSIOp) -> Function { return [](N a, N b, N) { return integer(a.integer % b.integer); }; })
        .Case([](arith::IndexCastOp) -> Function { return [](N a, N, N) { return integer(a.integer); }; })
        .Case([](arith::SIToFPOp) -> Function { return [](N a, N, N) { return real(static_cast<Real>(a.integer)); }; })
        .Case([](arith::FloorDivSIOp) -> Function {
          return [](N a, N b, N) { return integer(floor_divide(a.integer, b.integer)); };
        })
        .Case([](arith::MaxSIOp) -> Function {
          return [](N a, N b, N) { return integer(std::max(a.integer, b.integer)); };
        })
        .Case([](arith::MinSIOp) -> Function {
          return [](N a, N b, N) { return integer(std::min(a.integer, b.integer)); };
        })
        .Case([](math::AbsIOp) -> Function { return [](N a, N, N) { return integer(std::abs(a.integer)); }; })
        .Case([](arith::AndIOp) -> Function { return [](N a, N b, N) { return integer(a.integer & b.integer); }; })
        .Case([](arith::OrIOp) -> Function { return [](N a, N b, N) { return integer(a.integer | b.integer); }; })
        .Case([](arith::XOrIOp) -> Function { return [](N a, N b, N) { return integer(a.integer ^ b.integer); }; })
        .Case([](arith::SelectOp) -> Function { return [](N a, N b, N c) { return a.integer != 0 ? b : c; }; })
        .Case([](hstu::BitsFromOp) -> Function {
          return [](N a, N, N) {
            const uint32_t bits = a.integer <= 0 ? ~0u : a.integer >= 32 ? 0 : ~0u << a.integer;
            return integer(static_cast<int32_t>(bits));
          };
        })
        .Case([](arith::CmpFOp cmp) -> Function {
          switch (cmp.getPredicate()) {
            case arith::CmpFPredicate::OEQ:
              return [](N a, N b, N) { return integer(a.real == b.real); };
            case arith::CmpFPredicate::UNE:
              return [](N a, N b, N) { return integer(a.real != b.real); };
            case arith::CmpFPredicate::OLT:
              return [](N a, N b, N) { return integer(a.real < b.real); };
            case arith::CmpFPredicate::OLE:
              return [](N a, N b, N) { return integer(a.real <= b.real); };
            case arith::CmpFPredicate::OGE:
              return [](N a, N b, N) { return integer(a.real >= b.real); };
            default:
              EXPECT_EQ(cmp.getPredicate(), arith::CmpFPredicate::OGT);
              return [](N a, N b, N) { return integer(a.real > b.real); };
          }
        })
        .Case([](arith::AddFOp) -> Function { return [](N a, N b, N) { return real(a.real + b.real); }; })
        .Case([](arith::SubFOp) -> Function { return [](N a, N b, N) { return real(a.real - b.real); }; })
        .Case([](arith::MulFOp) -> Function { return [](N a, N b, N) { return real(a.real * b.real); }; })
        .Case([](arith::DivFOp) -> Function { return [](N a, N b, N) { return real(a.real / b.real); }; })
        .Case([](arith::NegFOp) -> Function { return [](N a, N, N) { return real(-a.real); }; })
        .Case([](arith::MaxNumFOp) -> Function { return [](N a, N b, N) { return real(std::fmax(a.real, b.real)); }; })
        .Case([](arith::MaximumFOp) -> Function {
          return [](N a, N b, N) { return std::isnan(a.real) || a.real > b.real ? a : b; };
        })
        .Case([](arith::MinimumFOp) -> Function {
          return [](N a, N b, N) { return std::isnan(a.real) || a.real < b.real ? a : b; };
        })
        .Case(
            [](arith::FPToSIOp) -> Function { return [](N a, N, N) { return integer(static_cast<int64_t>(a.real)); }; })
        .Case([](math::FloorOp) -> Function { return [](N a, N, N) { return real(std::floor(a.real)); }; })
        .Case([](math::PowFOp) -> Function { return [](N a, N b, N) { return real(std::pow(a.real, b.real)); }; })
        .Case([](math::Log2Op) -> Function { return [](N a, N, N) { return real(std::log2(a.real)); }; })
        .Case([](math::SinOp) -> Function { return [](N a, N, N) { return real(std::sin(a.real)); }; })
        .Case([](math::CosOp) -> Function { return [](N a, N, N) { return real(std::cos(a.real)); }; })
        .Case([](arith::MinNumFOp) -> Function { return [](N a, N b, N) { return real(std::fmin(a.real, b.real)); }; })
        .Case([](math::AbsFOp) -> Function { return [](N a, N, N) { return real(std::abs(a.real)); }; })
        .Case([](math::FmaOp) -> Function {
          return [](N a, N b, N c) { return real(std::fma(a.real, b.real, c.real)); };
        })
        .Case([](math::TanhOp) -> Function { return [](N a, N, N) { return real(std::tanh(a.real)); }; })
        .Case([](math::ExpOp) -> Function { return [](N a, N, N) { return real(std::exp(a.real)); }; })
        .Case([](math::LogOp) -> Function { return [](N a, N, N) { return real(std::log(a.real)); }; })
        .Case([](math::SqrtOp) -> Function { return [](N a, N, N) { return real(std::sqrt(a.real)); }; })
        .Case([](math::RsqrtOp) -> Function { return [](N a, N, N) { return real(1 / std::sqrt(a.real)); }; })
        .Case([](math::ErfOp) -> Function { return [](N a, N, N) { return real(std::erf(a.real)); }; })
        .Default([](mlir::Operation*) { return nullptr; });
  }

  void translate(mlir::Operation& op) {
    const size_t result = slot(op.getResult(0));
    if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
      Number value;
      if (auto real_attribute = mlir::dyn_cast<mlir::FloatAttr>(constant.getValue())) {
        value.real = static_cast<Real>(real_attribute.getValueAsDouble());
      } else {
        const auto integer_attribute = mlir::cast<mlir::IntegerAttr>(constant.getValue());
        const bool is_bool = constant.getType().isInteger(1);
        value.integer =
            is_bool ? static_cast<int64_t>(!integer_attribute.getValue().isZero()) : integer_attribute.getInt();
      }
      largest_ = std::max(largest_, std::abs(value.integer));
      constants_.emplace_back(result, value);
      return;
    }
    Step step{function_of(op), {0, 0, 0}, result};
    ASSERT_NE(step.function, nullptr) << op.getName().getStringRef().str() << " is not known to the evaluator";
    for (unsigned i = 0; i < op.getNumOperands(); ++i) step.operands[i] = slot(op.getOperand(i));
    steps_.push_back(step);
  }

  std::vector<bool> real_;  // of the arguments
  std::map<const void*, size_t> slots_;
  std::vector<std::pair<size_t, Number>> constants_;
  std::vector<Step> steps_;
  std::vector<size_t> results_;
  std::vector<Number> values_;
  int64_t largest_ = 0;
};

}  // namespace hstujit
