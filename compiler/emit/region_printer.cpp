#include "compiler/emit/region_printer.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/emit/expression.h"
#include "compiler/ir/hstu.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/region_functions.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

namespace hstujit {

namespace {

namespace arith = mlir::arith;
namespace math = mlir::math;
using mlir::Value;
using Predicate = arith::CmpIPredicate;

constexpr size_t kLongestExpression = 100;  // characters; a longer one becomes a variable

// An index is an int, in functions of rows an i64.
std::optional<std::string> type_name(mlir::Type type, bool wide) {
  if (type.isF32()) return "float";
  if (type.isInteger(1)) return "bool";
  if (type.isInteger(64) || (type.isIndex() && wide)) return "i64";
  if (type.isInteger(32)) return "u32";
  if (type.isIndex()) return "int";
  return std::nullopt;
}

const char* symbol(Predicate predicate) {
  switch (predicate) {
    case Predicate::eq:
      return "==";
    case Predicate::ne:
      return "!=";
    case Predicate::slt:
    case Predicate::ult:
      return "<";
    case Predicate::sle:
    case Predicate::ule:
      return "<=";
    case Predicate::sgt:
    case Predicate::ugt:
      return ">";
    case Predicate::sge:
    case Predicate::uge:
      return ">=";
  }
  llvm_unreachable("all predicates are covered");
}

const char* symbol(arith::CmpFPredicate predicate) {
  switch (predicate) {
    case arith::CmpFPredicate::OEQ:
      return "==";
    case arith::CmpFPredicate::UNE:
      return "!=";
    case arith::CmpFPredicate::OLT:
      return "<";
    case arith::CmpFPredicate::OLE:
      return "<=";
    case arith::CmpFPredicate::OGT:
      return ">";
    case arith::CmpFPredicate::OGE:
      return ">=";
    default:
      return nullptr;
  }
}

class RegionPrinter {
 public:
  RegionPrinter(Activation activation, bool wide, const llvm::DenseSet<mlir::Operation*>& precise)
      : mufu_(activation == Activation::kMufu), wide_(wide), precise_(precise) {}

  Result<std::string> print(mlir::func::FuncOp function);

 private:
  using Optional = std::optional<CExpression>;

  CExpression operand(mlir::Operation& op, unsigned i) {
    return expressions_.at(op.getOperand(i).getAsOpaquePointer());
  }
  struct Declared {
    std::vector<std::string> parameters;
    std::string prologue;
  };
  Declared declare_arguments(mlir::func::FuncOp function);
  // Whether a function of the mask takes the sequence's counts as one SequenceCounts (templates/common/jagged.cuh).
  bool takes_counts(mlir::func::FuncOp function) const;
  Optional expression(mlir::Operation& op);
  Optional integer_expression(mlir::Operation& op);
  Optional float_expression(mlir::Operation& op);
  CExpression read(hstu::ReadOp op);
  CExpression read_of_mask(hstu::ReadOp op);
  CExpression constant(arith::ConstantOp op);
  // row - col or col - row of the pair as a real number.
  static Optional distance_of(arith::SIToFPOp op);
  CExpression power(math::PowFOp op);
  CExpression sum(arith::AddIOp op);
  CExpression difference(arith::SubIOp op);
  CExpression compare(arith::CmpIOp op);
  Optional compare_floats(arith::CmpFOp op);
  bool is_fast(mlir::Operation& op) const { return mufu_ && !precise_.contains(&op); }
  CExpression approximate(mlir::Operation& op, const char* fast, const char* accurate) {
    return call(is_fast(op) ? fast : accurate, {operand(op, 0)});
  }
  // x, where the operand is x / 2 and nobody else has that.
  Optional operand_of_half(mlir::Operation& op) {
    auto product = op.getOperand(0).getDefiningOp<arith::MulFOp>();
    llvm::APFloat factor(0.0);
    if (!product || !product->hasOneUse() || !mlir::matchPattern(product.getRhs(), mlir::m_ConstantFloat(&factor)) ||
        factor.convertToDouble() != 0.5) {
      return std::nullopt;
    }
    return operand(*product, 0);
  }
  CExpression infix(mlir::Operation& op, const char* symbol, Precedence precedence, bool associative) {
    return binary(operand(op, 0), symbol, operand(op, 1), precedence, associative);
  }
  // The name that the IR has for the value, or one that says what it is: c for conditions, i for positions, t for tanh.
  std::string new_name(mlir::Operation& op);

  std::optional<std::string> type_of(mlir::Type type) const { return type_name(type, wide_); }

  // Whether a score may choose the value, and a function is called for it. Within the choice the compiler would branch
  // around it, for each pair of a tile by itself, and ptxas overlaps no wgmma with branches.
  bool is_computed_before_choice(mlir::Operation& op, const CExpression& found) const {
    auto choice = mlir::dyn_cast<arith::SelectOp>(*op.getUsers().begin());
    return of_pairs_ && choice && choice.getCondition() != op.getResult(0) && found.text.find('(') != std::string::npos;
  }

  const bool mufu_, wide_;
  bool of_pairs_ = false;  // a score, of one pair of row and column
  const llvm::DenseSet<mlir::Operation*>& precise_;
  std::map<const void*, CExpression> expressions_;
  std::map<std::string, int> names_;
  std::set<std::string> taken_;  // of arguments, results and values that the IR names
};

std::string RegionPrinter::new_name(mlir::Operation& op) {
  if (auto location = mlir::dyn_cast<mlir::NameLoc>(op.getLoc())) {
    const std::string wanted = location.getName().str();
    std::string name = wanted;
    for (int number = 2; !taken_.insert(name).second; ++number) name = fmt::format("{}_{}", wanted, number);
    return name;
  }
  std::string stem = llvm::TypeSwitch<mlir::Operation*, std::string>(&op)
                         .Case([](math::TanhOp) { return "t"; })
                         .Case([](math::ExpOp) { return "e"; })
                         .Default([](mlir::Operation* other) {
                           const mlir::Type type = other->getResult(0).getType();
                           return type.isF32() ? "s" : type.isInteger(1) ? "b" : "i";
                         });
  return fmt::format("{}{}", stem, names_[stem]++);
}

CExpression RegionPrinter::constant(arith::ConstantOp op) {
  if (auto real = mlir::dyn_cast<mlir::FloatAttr>(op.getValue())) {
    const float value = real.getValue().convertToFloat();
    return {float_literal(value), std::signbit(value) ? Precedence::kUnary : Precedence::kPrimary};
  }
  auto integer = mlir::cast<mlir::IntegerAttr>(op.getValue());
  if (op.getType().isInteger(1)) return {integer.getValue().isZero() ? "false" : "true"};
  const int64_t value = integer.getInt();
  if (op.getType().isInteger(32)) return {fmt::format("{:#x}u", static_cast<uint32_t>(value))};
  return {fmt::format("{}{}", value, type_of(op.getType()) == "i64" ? "ll" : ""),
          value < 0 ? Precedence::kUnary : Precedence::kPrimary};
}

// a + -5 is written a - 5.
CExpression RegionPrinter::sum(arith::AddIOp op) {
  llvm::APInt value;
  if (mlir::matchPattern(op.getRhs(), mlir::m_ConstantInt(&value)) && value.isNegative()) {
    const char* const suffix = type_of(op.getType()) == "i64" ? "ll" : "";
    return binary(operand(*op, 0), "-", {fmt::format("{}{}", -value.getSExtValue(), suffix)}, Precedence::kSum, true);
  }
  return infix(*op, "+", Precedence::kSum, true);
}

// a - -5 is written a + 5.
CExpression RegionPrinter::difference(arith::SubIOp op) {
  const std::optional<int64_t> less = constant_index(op.getRhs());
  if (!less || *less >= 0) return infix(*op, "-", Precedence::kSum, false);
  const char* const suffix = type_of(op.getType()) == "i64" ? "ll" : "";
  return binary(operand(*op, 0), "+", {fmt::format("{}{}", -*less, suffix)}, Precedence::kSum, true);
}

CExpression RegionPrinter::compare(arith::CmpIOp op) {
  const Predicate predicate = op.getPredicate();
  const bool equality = predicate == Predicate::eq || predicate == Predicate::ne;
  CExpression a = operand(*op, 0), b = operand(*op, 1);
  if (predicate >= Predicate::ult) {
    const char* const cast = type_of(op.getLhs().getType()) == "i64" ? "static_cast<u64>" : "static_cast<unsigned>";
    a = call(cast, {a});
    b = call(cast, {b});
  }
  return binary(a, symbol(predicate), b, equality ? Precedence::kEquality : Precedence::kRelation, false);
}

// An integer that a mask reads, of its own row or column, its sequence or all of them.
CExpression RegionPrinter::read_of_mask(hstu::ReadOp op) {
  const std::string name = "counts.params->score_" + op.getOperand().str();
  if (op.is_of(row_kind().name)) return call("mask_row_element", {{name}, {"counts"}, {"n"}, operand(*op, 0)});
  const CExpression element = call("__ldg", {{op.is_of(sequence_kind().name) ? name + " + counts.number" : name}});
  return op.getDtype().isInteger(32) ? call("static_cast<i64>", {element}) : element;
}

// Whether the operand's row is that of the pair, or of its column.
bool is_of_pair(hstu::ReadOp op) {
  const auto position = mlir::dyn_cast<mlir::BlockArgument>(op.getPosition());
  constexpr unsigned kRow = 1, kColumn = 2;
  return op.is_of(row_kind().name) && position &&
         (position.getArgNumber() == kRow || position.getArgNumber() == kColumn);
}

// <kind>_element of templates/attention/operands/<kind>.cuh. The type of 16-bit floats is an argument of its own.
CExpression RegionPrinter::read(hstu::ReadOp op) {
  if (!of_pairs_) return read_of_mask(op);
  const std::string name = "params.score_" + op.getOperand().str();  // Operand::member
  std::vector<CExpression> arguments = {{"pair"}};
  if (op.getDtype().isBF16()) arguments.push_back({"Bf16()"});
  if (op.getDtype().isF16()) arguments.push_back({"Fp16()"});
  if (op.is_of(pair_kind().name)) {
    const std::string group = op.getGroup() > 1 ? fmt::format("pair.head / {}", op.getGroup()) : "pair.head";
    const std::string of_head = op.getByHead() ? fmt::format(" + {} * {}_head_stride", group, name) : "";
    arguments.push_back({fmt::format("{0} + pair.t.number * {0}_batch_stride{1}", name, of_head)});
    arguments.push_back({name + "_row_stride"});
    arguments.push_back({"params.max_seq_len"});
    return call("pair_element", arguments);
  }
  const std::string head = op.getGroup() > 1 ? fmt::format("pair.head / {}", op.getGroup()) : "pair.head";
  arguments.push_back({op.getByHead() ? name + " + " + head : name});
  if (op.is_of(row_kind().name) || op.is_of(table_kind().name))
    arguments.push_back({op.getByHead() ? name + "_row_stride" : "1"});
  if (op.is_of(table_kind().name)) arguments.push_back({fmt::to_string(op.getEntries())});
  if (!op.is_of(scalar_kind().name) && !op.is_of(sequence_kind().name)) arguments.push_back(operand(*op, 0));
  const CExpression element = call((is_of_pair(op) ? "own_" : "") + op.getKind().str() + "_element", arguments);
  return op.getDtype().isInteger(32) ? call("static_cast<i64>", {element}) : element;
}

std::optional<CExpression> RegionPrinter::compare_floats(arith::CmpFOp op) {
  const char* text = symbol(op.getPredicate());
  if (!text) return std::nullopt;
  const bool equality =
      op.getPredicate() == arith::CmpFPredicate::OEQ || op.getPredicate() == arith::CmpFPredicate::UNE;
  return infix(*op, text, equality ? Precedence::kEquality : Precedence::kRelation, false);
}

std::optional<CExpression> RegionPrinter::integer_expression(mlir::Operation& op) {
  const mlir::Type type = op.getResult(0).getType();
  const bool is_bool = type.isInteger(1), is_bits = type.isInteger(32);
  return llvm::TypeSwitch<mlir::Operation*, Optional>(&op)
      .Case([&](arith::AddIOp add) -> Optional { return sum(add); })
      .Case([&](arith::SubIOp sub) -> Optional {
        if (mlir::matchPattern(sub.getLhs(), mlir::m_Zero())) return prefix("-", operand(op, 1));
        return difference(sub);
      })
      .Case([&](arith::MulIOp) -> Optional { return infix(op, "*", Precedence::kProduct, false); })
      .Case([&](arith::DivSIOp) -> Optional { return infix(op, "/", Precedence::kProduct, false); })
      .Case([&](arith::RemSIOp) -> Optional { return infix(op, "%", Precedence::kProduct, false); })
      .Case([&](arith::FloorDivSIOp) -> Optional {
        return call(type_of(type) == "i64" ? "floor_div_wide" : "floor_div", {operand(op, 0), operand(op, 1)});
      })
      .Case([&](arith::MaxSIOp) -> Optional { return call("max", {operand(op, 0), operand(op, 1)}); })
      .Case([&](arith::MinSIOp) -> Optional { return call("min", {operand(op, 0), operand(op, 1)}); })
      .Case([&](math::AbsIOp) -> Optional { return call("abs", {operand(op, 0)}); })
      .Case([&](arith::AndIOp) -> Optional {
        if (is_bits) return infix(op, "&", Precedence::kBitAnd, true);
        return is_bool ? Optional(infix(op, "&&", Precedence::kAnd, true)) : std::nullopt;
      })
      .Case([&](arith::OrIOp) -> Optional {
        if (is_bits) return infix(op, "|", Precedence::kBitOr, true);
        return is_bool ? Optional(infix(op, "||", Precedence::kOr, true)) : std::nullopt;
      })
      .Case([&](arith::XOrIOp exclusive) -> Optional {
        if (is_bits && constant_index(exclusive.getRhs()) == -1) return prefix("~", operand(op, 0));
        if (is_bits) return infix(op, "^", Precedence::kBitXor, true);
        if (!is_bool) return std::nullopt;
        if (mlir::matchPattern(exclusive.getRhs(), mlir::m_One())) return prefix("!", operand(op, 0));
        return infix(op, "!=", Precedence::kEquality, false);
      })
      .Case([&](hstu::BitsFromOp) -> Optional { return call("bits_from", {operand(op, 0)}); })
      .Case([&](arith::CmpIOp compare_op) -> Optional { return compare(compare_op); })
      .Case([&](arith::CmpFOp compare_op) { return compare_floats(compare_op); })
      .Case([&](arith::IndexCastOp cast) -> Optional {
        const mlir::Type from = cast.getIn().getType(), to = cast.getType();
        if (!wide_ && from.isInteger(64) != to.isInteger(64))
          return call(fmt::format("static_cast<{}>", *type_of(to)), {operand(op, 0)});
        // Bits are unsigned, and an integer part is none of them.
        const bool signed_already = operand(op, 0).text.starts_with("static_cast<int>(");
        if (!from.isInteger(32) || signed_already) return operand(op, 0);
        return call("static_cast<int>", {operand(op, 0)});
      })
      .Case([&](arith::FPToSIOp) -> Optional {
        if (is_bits) return call("static_cast<int>", {operand(op, 0)});
        return call(fmt::format("static_cast<{}>", *type_of(op.getResult(0).getType())), {operand(op, 0)});
      })
      .Case([&](hstu::ElementOp element) -> Optional {
        const std::string tensor = "params." + element.getTensor().str();
        return call("element_of", {{tensor}, {tensor + "_rows"}, operand(op, 0)});
      })
      .Case([&](hstu::ExtentOp extent) -> Optional {
        return CExpression{"params." + extent.getOperand().str() + "_rows"};
      })
      .Case([&](hstu::ArgumentOp argument) -> Optional { return CExpression{"params." + argument.getName().str()}; })
      .Default([](mlir::Operation*) -> Optional { return std::nullopt; });
}

std::optional<CExpression> RegionPrinter::float_expression(mlir::Operation& op) {
  const auto a = [&] { return operand(op, 0); };
  const auto b = [&] { return operand(op, 1); };
  return llvm::TypeSwitch<mlir::Operation*, Optional>(&op)
      .Case([&](arith::AddFOp) -> Optional { return infix(op, "+", Precedence::kSum, false); })
      .Case([&](arith::SubFOp) -> Optional { return infix(op, "-", Precedence::kSum, false); })
      .Case([&](arith::MulFOp) -> Optional {
        return op.hasAttr(kUnfused) ? call("__fmul_rn", {a(), b()}) : infix(op, "*", Precedence::kProduct, false);
      })
      .Case([&](arith::DivFOp) -> Optional {
        return is_fast(op) ? call("fast_divide", {a(), b()}) : infix(op, "/", Precedence::kProduct, false);
      })
      .Case([&](arith::NegFOp) -> Optional { return prefix("-", a()); })
      .Case([&](arith::MaxNumFOp) -> Optional { return call("fmaxf", {a(), b()}); })
      .Case([&](arith::MaximumFOp) -> Optional { return call("max_nan", {a(), b()}); })
      .Case([&](arith::MinimumFOp) -> Optional { return call("min_nan", {a(), b()}); })
      .Case([&](arith::MinNumFOp) -> Optional { return call("fminf", {a(), b()}); })
      .Case([&](arith::SIToFPOp convert) -> Optional {
        if (const auto distance = distance_of(convert)) return distance;
        const bool is_read = of_pairs_ && convert.getIn().getType().isInteger(64);
        return call(is_read ? "wide_to_float" : "static_cast<float>", {a()});
      })
      .Case([&](hstu::ArgumentOp argument) -> Optional { return CExpression{"params." + argument.getName().str()}; })
      .Case([&](hstu::RoundOp round) -> Optional {
        return call(round.getDtype().isBF16() ? "rounded_to<Bf16>" : "rounded_to<Fp16>", {a()});
      })
      .Case([&](math::FmaOp) -> Optional { return call("fmaf", {a(), b(), operand(op, 2)}); })
      .Case([&](math::AbsFOp) -> Optional { return call("fabsf", {a()}); })
      .Case([&](math::ErfOp) -> Optional { return call("erff", {a()}); })
      .Case([&](math::TanhOp) -> Optional {
        if (mufu_ && precise_.contains(&op)) {
          if (auto halved = operand_of_half(op)) return call("precise_tanh_of_half", {*halved});
        }
        return approximate(op, "fast_tanh", mufu_ ? "precise_tanh" : "tanhf");
      })
      .Case([&](math::ExpOp) -> Optional { return approximate(op, "fast_exp", "expf"); })
      .Case([&](math::Exp2Op) -> Optional { return approximate(op, "fast_exp2", "exp2f"); })
      .Case([&](math::LogOp) -> Optional { return approximate(op, "fast_log", "logf"); })
      .Case([&](math::Log2Op) -> Optional { return approximate(op, "fast_log2", "log2f"); })
      .Case([&](math::SinOp) -> Optional { return call("sinf", {a()}); })
      .Case([&](math::CosOp) -> Optional { return call("cosf", {a()}); })
      .Case([&](math::PowFOp power_op) -> Optional { return power(power_op); })
      .Case([&](math::FloorOp) -> Optional { return call("floorf", {a()}); })
      .Case([&](math::SqrtOp) -> Optional { return approximate(op, "fast_sqrt", "sqrtf"); })
      .Case([&](math::RsqrtOp) -> Optional {
        return approximate(op, "fast_rsqrt", precise_.contains(&op) ? "precise_rsqrt" : "rsqrtf");
      })
      .Default([](mlir::Operation*) -> Optional { return std::nullopt; });
}

std::optional<CExpression> RegionPrinter::distance_of(arith::SIToFPOp op) {
  Value integer = op.getIn();
  if (auto cast = integer.getDefiningOp<arith::IndexCastOp>()) integer = cast.getIn();
  auto difference = integer.getDefiningOp<arith::SubIOp>();
  if (!difference) return std::nullopt;
  const auto is_pairs = [&](Value value, std::string_view name) {
    const auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
    return argument && is_pair_argument(argument) &&
           argument_name(op->getParentOfType<mlir::func::FuncOp>(), argument.getArgNumber()) == name;
  };
  const CExpression distance = call("pair_distance", {{"pair"}});
  if (is_pairs(difference.getLhs(), "row") && is_pairs(difference.getRhs(), "col")) return distance;
  if (is_pairs(difference.getLhs(), "col") && is_pairs(difference.getRhs(), "row")) return prefix("-", distance);
  return std::nullopt;
}

// Writes two functions of the special-function unit for a base above 0; powf is some fifty instructions and branches.
CExpression RegionPrinter::power(math::PowFOp op) {
  const CExpression base = operand(*op, 0), exponent = operand(*op, 1);
  if (!is_fast(*op) || !op->hasAttr(kPositiveBase)) return call("powf", {base, exponent});
  llvm::APFloat number(0.0);
  const bool known = mlir::matchPattern(op.getLhs(), mlir::m_ConstantFloat(&number));
  const double logarithm = known ? std::log2(number.convertToDouble()) : 0;
  if (logarithm == 1) return call("fast_exp2", {exponent});
  const CExpression factor = known ? CExpression{float_literal(static_cast<float>(logarithm)),
                                                 logarithm < 0 ? Precedence::kUnary : Precedence::kPrimary}
                                   : call("fast_log2", {base});
  return call("fast_exp2", {binary(exponent, "*", factor, Precedence::kProduct, false)});
}

std::optional<CExpression> RegionPrinter::expression(mlir::Operation& op) {
  if (op.getNumResults() != 1 || !type_of(op.getResult(0).getType())) return std::nullopt;
  if (auto constant_op = mlir::dyn_cast<arith::ConstantOp>(op)) return constant(constant_op);
  if (auto read_op = mlir::dyn_cast<hstu::ReadOp>(op)) return read(read_op);
  if (mlir::isa<arith::SelectOp>(op)) return conditional(operand(op, 0), operand(op, 1), operand(op, 2));
  return op.getResult(0).getType().isF32() ? float_expression(op) : integer_expression(op);
}

bool RegionPrinter::takes_counts(mlir::func::FuncOp function) const {
  return !wide_ && llvm::any_of(function.getArguments(), [&](mlir::BlockArgument argument) {
    return argument.getType().isIndex() && argument_name(function, argument.getArgNumber()) == kContextsArgument;
  });
}

// A score asks at() where the pair is, and takes scalars and operands of the launch from its parameters. Of either it
// reads what it uses, first of all: nothing is reordered with regard to a function that takes them by value.
RegionPrinter::Declared RegionPrinter::declare_arguments(mlir::func::FuncOp function) {
  Declared declared;
  bool asks_where = false, reads_launch = false;
  bool reads_operands = false;
  function.walk([&](hstu::ReadOp) { reads_operands = llvm::any_of(function.getArguments(), is_pair_argument); });
  asks_where = reads_launch = reads_operands;
  const bool counts = takes_counts(function);
  if (wide_) declared.parameters.emplace_back("const Params& params");
  for (const mlir::BlockArgument argument : function.getArguments()) {
    const std::string name = argument_name(function, argument.getArgNumber());
    const std::string type = type_of(argument.getType()).value_or("?");
    expressions_[argument.getAsOpaquePointer()] = {is_pair_argument(argument) ? "pair." + name : name};
    if (is_pair_argument(argument)) {
      if (name == kTargetsArgument && masks_take_contexts(function->getParentOfType<mlir::ModuleOp>()))
        expressions_[argument.getAsOpaquePointer()] = {"pair.t.targets"};
      asks_where = asks_where || !argument.use_empty();
      continue;
    }
    taken_.insert(name);
    if (counts && (name == kTargetsArgument || name == kContextsArgument)) {
      if (name == kTargetsArgument) declared.parameters.emplace_back("SequenceCounts counts");
      const char* const member = name == kTargetsArgument ? "targets" : "contexts";
      if (!argument.use_empty()) declared.prologue += fmt::format("  const int {} = counts.{};\n", name, member);
    } else if (!is_launch_scalar(argument)) {
      declared.parameters.push_back(fmt::format("{} {}", type, name));
    } else if (!argument.use_empty()) {
      reads_launch = true;
      declared.prologue += fmt::format("  const {0} {1} = params.{1};\n", type, name);
    }
  }
  if (llvm::any_of(function.getArguments(), is_pair_argument))
    declared.parameters.emplace_back(asks_where ? "const At& at" : "const At&");
  if (llvm::any_of(function.getArguments(), is_launch_scalar))
    declared.parameters.emplace_back(reads_launch ? "const Params& params" : "const Params&");
  if (asks_where) declared.prologue = "  const auto pair = at();\n" + declared.prologue;
  for (const char* name : {"at", "pair", "params"}) taken_.insert(name);
  if (counts) taken_.insert("counts");
  return declared;
}

Result<std::string> RegionPrinter::print(mlir::func::FuncOp function) {
  const bool returns_value = function.getNumResults() == 1;
  const std::string result_type = returns_value ? type_of(function.getResultTypes()[0]).value_or("?") : "void";
  auto [parameters, prologue] = declare_arguments(function);
  for (unsigned i = 0; !returns_value && i < function.getNumResults(); ++i) {
    const std::string name = result_name(function, i);
    parameters.push_back(fmt::format("{}& {}", type_of(function.getResultTypes()[i]).value_or("?"), name));
    taken_.insert(name);
  }
  const std::string before = fmt::format("__device__ __forceinline__ {} {}", result_type, function.getName().str());
  of_pairs_ = llvm::any_of(function.getArguments(), is_pair_argument);
  std::string text = of_pairs_ ? "template <class At>\n" : "";
  text += wrapped_call(before, parameters, " {\n") + prologue;
  for (mlir::Operation& op : function.getBody().front().without_terminator()) {
    const Optional found = expression(op);
    if (!found) {
      return Status(Code::kUnsupported, fmt::format("{} in {} cannot be written in CUDA",
                                                    op.getName().getStringRef().str(), function.getName().str()));
    }
    const Value result = op.getResult(0);
    const bool constant = op.hasTrait<mlir::OpTrait::ConstantLike>();
    const bool inlined = constant || (result.hasOneUse() && found->text.size() <= kLongestExpression &&
                                      !is_computed_before_choice(op, *found));
    if (inlined) {
      expressions_[result.getAsOpaquePointer()] = *found;
      continue;
    }
    const std::string name = new_name(op);
    text += fmt::format("  const {} {} = {};\n", *type_of(result.getType()), name, found->text);
    expressions_[result.getAsOpaquePointer()] = {name};
  }
  mlir::Operation& end = *function.getBody().front().getTerminator();
  if (returns_value) {
    text += fmt::format("  return {};\n", operand(end, 0).text);
  } else {
    for (unsigned i = 0; i < end.getNumOperands(); ++i) {
      text += fmt::format("  {} = {};\n", result_name(function, i), operand(end, i).text);
    }
  }
  return text + "}\n";
}

}  // namespace

Result<Activation> parse_activation(std::string_view text) {
  if (text == "mufu") return Activation::kMufu;
  if (text == "accurate") return Activation::kAccurate;
  return Status(Code::kInvalidArgument, fmt::format("activation is \"{}\"; allowed are mufu and accurate", text));
}

Result<std::string> print_region(mlir::func::FuncOp function, Activation activation,
                                 const llvm::DenseSet<mlir::Operation*>& precise) {
  return RegionPrinter(activation, false, precise).print(function);
}

Result<std::string> print_row_index(mlir::func::FuncOp function) {
  return RegionPrinter(Activation::kAccurate, true, {}).print(function);
}

}  // namespace hstujit
