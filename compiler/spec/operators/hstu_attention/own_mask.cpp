#include "compiler/spec/operators/hstu_attention/own_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "compiler/expression/bind.h"
#include "compiler/expression/magnitude.h"
#include "compiler/expression/parse.h"
#include "compiler/spec/operators/hstu_attention/bound_mask.h"
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"

namespace hstujit {

namespace {

constexpr ExpressionName kMaskNames[] = {{"row", "row"}, {"col", "column"}, {"n", "n"}, {"targets", "t"}};

// Whether two bound expressions are the same but for the order of operands that may be exchanged, and for x < 5 in
// place of x <= 4.
class Likeness {
 public:
  Likeness(const Expression& a, const Expression& b) : a_(a), b_(b) {}

  bool holds() const { return alike(a_.root(), b_.root()); }

 private:
  using Node = Expression::Node;

  // a <= c is less(a, c + 1) where c is a constant; both ends may be one.
  struct Order {
    int less = -1, more = -1;  // nodes
    int64_t by = 0;            // less + by <= more
  };

  static bool is_order(const Node& node) { return node.op == Operator::kLt || node.op == Operator::kLe; }
  static std::optional<int64_t> constant(const Expression& of, int node) {
    return of.node(node).op == Operator::kConstant ? std::optional(of.node(node).value) : std::nullopt;
  }

  bool alike(int a, int b) const {
    const Node &x = a_.node(a), &y = b_.node(b);
    if (is_order(x) && is_order(y)) return alike_orders(x, y);
    if (x.op != y.op || x.boolean != y.boolean) return false;
    if (x.op == Operator::kConstant) return x.value == y.value;
    if (x.op == Operator::kSymbol) {
      return a_.symbols()[static_cast<size_t>(x.value)].name == b_.symbols()[static_cast<size_t>(y.value)].name;
    }
    const bool exchange = x.op == Operator::kAdd || x.op == Operator::kMul || x.op == Operator::kMax ||
                          x.op == Operator::kMin || x.op == Operator::kEq || x.op == Operator::kAnd ||
                          x.op == Operator::kOr;
    if (operands_alike(x, y, {0, 1, 2})) return true;
    return exchange && operands_alike(x, y, {1, 0, 2});
  }

  bool operands_alike(const Node& x, const Node& y, const std::array<size_t, 3>& order) const {
    for (size_t i = 0; i < order.size(); ++i) {
      const int a = x.operands[i], b = y.operands[order[i]];
      if ((a < 0) != (b < 0) || (a >= 0 && !alike(a, b))) return false;
    }
    return true;
  }

  // x + p <= y as x's and y's parts without constants, and the sum of those.
  Order order_of(const Expression& of, const Node& node) const {
    Order order = {node.operands[0], node.operands[1], node.op == Operator::kLt ? 1 : 0};
    if (const auto least = constant(of, order.less)) order.by += *least, order.less = -1;
    if (const auto most = constant(of, order.more)) order.by -= *most, order.more = -1;
    return order;
  }

  bool alike_orders(const Node& x, const Node& y) const {
    const Order a = order_of(a_, x), b = order_of(b_, y);
    if (a.by != b.by || (a.less < 0) != (b.less < 0) || (a.more < 0) != (b.more < 0)) return false;
    return (a.less < 0 || alike(a.less, b.less)) && (a.more < 0 || alike(a.more, b.more));
  }

  const Expression& a_;
  const Expression& b_;
};

// The same where 0 <= row < n, which every pair obeys: comparisons of these two are decided, n is not negative, and
// what follows is folded.
Expression within_sequence(const Expression& mask) {
  ExpressionBuilder builder;
  for (const Expression::Symbol& symbol : mask.symbols()) builder.number(symbol.name);
  const auto is_symbol = [&](int node, std::string_view name) {
    const Expression::Node& of = mask.node(node);
    return of.op == Operator::kSymbol && mask.symbols()[static_cast<size_t>(of.value)].name == name;
  };
  const auto is_rows = [&](int node) {  // n, or max(n, 0)
    const Expression::Node& of = mask.node(node);
    return is_symbol(node, "n") ||
           (of.op == Operator::kMax && is_symbol(of.operands[0], "n") &&
            mask.node(of.operands[1]).op == Operator::kConstant && mask.node(of.operands[1]).value == 0);
  };
  std::vector<Term> terms;
  for (size_t i = 0; i < mask.nodes().size(); ++i) {
    const Expression::Node& node = mask.nodes()[i];
    const auto term = [&](size_t operand) {
      return node.operands[operand] < 0 ? Term() : terms[static_cast<size_t>(node.operands[operand])];
    };
    if (node.op == Operator::kConstant) {
      terms.push_back(node.boolean ? builder.truth(node.value != 0) : builder.integer(node.value));
    } else if (node.op == Operator::kSymbol) {
      terms.push_back(builder.number(mask.symbols()[static_cast<size_t>(node.value)].name));
    } else if (is_rows(static_cast<int>(i))) {
      terms.push_back(builder.number("n"));
    } else if (node.op == Operator::kLt && is_symbol(node.operands[0], "row") && is_rows(node.operands[1])) {
      terms.push_back(builder.truth(true));
    } else if (node.op == Operator::kLe && is_rows(node.operands[0]) && is_symbol(node.operands[1], "row")) {
      terms.push_back(builder.truth(false));
    } else {
      terms.push_back(builder.apply(node.op, term(0), term(1), term(2)));
    }
  }
  return bind_symbols(std::move(builder).finish(terms[static_cast<size_t>(mask.root())]), {});
}

HstuAttentionParams without_mask(const HstuAttentionParams& params) {
  HstuAttentionParams plain = params;
  plain.mask.clear();
  plain.causal = true;
  return plain;
}

}  // namespace

namespace {

// Whether masks read operands of this kind.
bool is_read_by_masks(const Operand& operand) {
  const bool of_kind =
      operand.kind == &row_kind() || operand.kind == &sequence_kind() || operand.kind == &scalar_kind();
  return of_kind && is_integer(operand.dtype) && operand.heads == 0;
}

// kMaskNames and the operands that masks read, which must outlive them.
std::vector<ExpressionName> mask_names(const std::vector<Operand>& operands) {
  std::vector<ExpressionName> names(std::begin(kMaskNames), std::end(kMaskNames));
  for (const Operand& operand : operands) {
    if (!is_read_by_masks(operand)) continue;
    names.push_back(
        {operand.name, operand.name, false, operand.kind == &row_kind() ? Reads::kAtRowOrColumn : Reads::kElement});
  }
  return names;
}

// Refuses a mask that names an operand that it cannot read: one of another kind, or one with the name of a symbol of
// kMaskNames, because the two would be one.
Status check_names(std::string_view text, const std::vector<Operand>& operands) {
  const auto is_of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (const Operand& operand : operands) {
    const bool is_symbol =
        std::ranges::any_of(kMaskNames, [&](const ExpressionName& name) { return name.symbol == operand.name; });
    if (!is_symbol && is_read_by_masks(operand)) continue;
    for (size_t at = text.find(operand.name); at != text.npos; at = text.find(operand.name, at + 1)) {
      const size_t end = at + operand.name.size();
      if ((at > 0 && is_of_name(text[at - 1])) || (end < text.size() && is_of_name(text[end]))) continue;
      const std::string_view why =
          is_symbol ? "rename the operand" : "masks read integers of rows, sequences and scalars";
      return Status(Code::kInvalidConfig,
                    fmt::format("column {}: a mask cannot read the operand {}; {}", at + 1, operand.name, why));
    }
  }
  return {};
}

// Kernels compute the numbers of a mask in 32 bits, but for those that are read.
Status check_numbers(const Expression& mask) {
  const Interval rows = {0, kMaxOwnMaskSeqLen}, of_symbols[] = {rows, rows, rows, rows};
  const int64_t largest = largest_magnitude(mask, of_symbols);
  if (largest > kLargestOwnInteger) {
    return Status(Code::kInvalidConfig,
                  fmt::format("its numbers, or the bounds that follow from them, may be as large as {} where sequences "
                              "have {} rows; allowed: up to {}",
                              largest, kMaxOwnMaskSeqLen, kLargestOwnInteger));
  }
  return {};
}

// Copies a condition in which comparisons of what is read hold, or do not.
class Bounding {
 public:
  explicit Bounding(const Expression& mask) : mask_(mask), reads_(mask.nodes().size()) {
    for (size_t i = 0; i < reads_.size(); ++i) {
      const Expression::Node& node = mask.nodes()[i];
      reads_[i] = node.op == Operator::kRead || std::ranges::any_of(node.operands, [&](int operand) {
                    return operand >= 0 && reads_[static_cast<size_t>(operand)];
                  });
    }
    for (const ExpressionName& name : kMaskNames) builder_.number(name.symbol);
  }

  bool reads() const { return reads_[static_cast<size_t>(mask_.root())]; }
  Expression bound(bool most) && {
    const Term root = condition(mask_.root(), most);
    return std::move(builder_).finish(root);
  }

 private:
  Term condition(int number, bool most) {
    const Expression::Node& node = mask_.node(number);
    if (!reads_[static_cast<size_t>(number)]) return copy(number);
    const auto part = [&](size_t i, bool of) { return condition(node.operands[i], of); };
    switch (node.op) {
      case Operator::kAnd:
        return builder_.both(part(0, most), part(1, most));
      case Operator::kOr:
        return builder_.either(part(0, most), part(1, most));
      case Operator::kNot:
        return builder_.negate(part(0, !most));
      case Operator::kSelect: {
        const Term where = builder_.both(part(0, most), part(1, most));
        return builder_.either(where, builder_.both(builder_.negate(part(0, !most)), part(2, most)));
      }
      default:
        return builder_.truth(most);
    }
  }

  Term copy(int number) {
    const Expression::Node& node = mask_.node(number);
    if (node.op == Operator::kConstant)
      return node.boolean ? builder_.truth(node.value != 0) : builder_.integer(node.value);
    if (node.op == Operator::kSymbol) return builder_.number(mask_.symbols()[static_cast<size_t>(node.value)].name);
    Term parts[3];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (node.operands[i] >= 0) parts[i] = copy(node.operands[i]);
    }
    return builder_.apply(node.op, parts[0], parts[1], parts[2]);
  }

  const Expression& mask_;
  std::vector<bool> reads_;
  ExpressionBuilder builder_;
};

}  // namespace

bool reads_operands(const Expression& mask) { return Bounding(mask).reads(); }

Expression without_reads(const Expression& mask, bool most) { return Bounding(mask).bound(most); }

Expression own_mask(const HstuAttentionParams& params) {
  return parse_mask(params.mask, own_operands(params.operands, params.heads)).value();
}

Result<Expression> parse_mask(std::string_view text, const std::vector<Operand>& operands) {
  HSTUJIT_RETURN_IF_ERROR(check_names(text, operands));
  Result<Expression> expression = parse_condition(text, mask_names(operands));
  if (!expression.ok()) return expression;
  if (!operands.empty()) expression = expression->pruned();
  if (reads_operands(*expression)) {
    HSTUJIT_RETURN_IF_ERROR(check_numbers(without_reads(*expression, true)));
    return expression;
  }
  HSTUJIT_RETURN_IF_ERROR(check_numbers(*expression));
  return expression;
}

std::string canonical_mask(std::string_view text, const std::vector<Operand>& operands) {
  return to_text(parse_mask(text, operands).value(), mask_names(operands));
}

std::optional<HstuAttentionParams> fields_of_mask(const HstuAttentionParams& params) {
  if (reads_operands(own_mask(params))) return std::nullopt;
  const Expression own = within_sequence(bound_mask(params));
  const HstuAttentionParams plain = without_mask(params);
  std::vector<HstuAttentionParams> candidates = {plain, plain};
  candidates[1].full_mask = true;
  candidates[1].causal = false;
  // Windows and parts of semi-local attention are among the numbers of the text, or one beside them.
  std::set<int64_t> numbers;
  for (const Expression::Node& node : own.nodes()) {
    if (node.op != Operator::kConstant || node.boolean) continue;
    const int64_t value = std::abs(node.value);
    for (const int64_t near : {value - 1, value, value + 1}) {
      if (near > 0 && near < kMaxSeqLen) numbers.insert(near);
    }
  }
  for (const int64_t number : numbers) {
    candidates.push_back(plain);
    candidates.back().max_attn_len = number;
    candidates.push_back(plain);
    candidates.back().sla_k1 = number;
    for (const int64_t leading : numbers) {
      candidates.push_back(plain);
      candidates.back().sla_k1 = number;
      candidates.back().sla_k2 = leading;
      if (candidates.size() > 256) break;
    }
    if (candidates.size() > 256) break;
  }
  for (HstuAttentionParams& candidate : candidates) {
    const bool excluded = candidate.num_targets && !candidate.causal;  // "no mask" has no targets
    if (!excluded && Likeness(own, within_sequence(bound_mask(candidate))).holds()) return candidate;
  }
  return std::nullopt;
}

}  // namespace hstujit
