#include "compiler/spec/operators/hstu_attention/own_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/expression/magnitude.h"
#include "compiler/expression/parse.h"
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"
#include "compiler/spec/operators/hstu_attention/own_mask.h"

namespace hstujit {

namespace {

constexpr ExpressionName kNames[] = {{"x", "x", true},   {"row", "row"},          {"col", "col"},
                                     {"n", "n"},         {"targets", "targets"},  {"head", "head"},
                                     {"heads", "heads"}, {"alpha", "alpha", true}};

struct NamedScore {
  std::string_view name, text;
};
constexpr NamedScore kNamedScores[] = {{"silu", "silu(x)"},       {"relu", "relu(x)"}, {"relu2", "pow(relu(x), 2.0)"},
                                       {"sigmoid", "sigmoid(x)"}, {"tanh", "tanh(x)"}, {"gelu", "gelu(x)"},
                                       {"identity", "x"}};

constexpr int64_t kMostHeads = 1024;

const NamedScore* find_named(std::string_view name) {
  const auto* found = std::find_if(std::begin(kNamedScores), std::end(kNamedScores),
                                   [&](const auto& score) { return score.name == name; });
  return found == std::end(kNamedScores) ? nullptr : found;
}

// kNames and the operands, which must outlive them.
std::vector<ExpressionName> names_with(const std::vector<Operand>& operands) {
  std::vector<ExpressionName> names(std::begin(kNames), std::end(kNames));
  for (const Operand& operand : operands) {
    const bool indexed = operand.kind == &row_kind() || operand.kind == &table_kind();
    names.push_back({operand.name, operand.name, !is_integer(operand.dtype),
                     indexed                        ? Reads::kAtIndex
                     : operand.kind == &pair_kind() ? Reads::kAtPair
                                                    : Reads::kElement});
  }
  return names;
}

bool is_named(const HstuAttentionParams& params) { return is_named_score(params.score) && !params.has_softmax_score(); }

bool is_number(const Expression& score, int node, double number) {
  const Expression::Node& of = score.node(node);
  return of.op == Operator::kConstant && of.real && of.number == number;
}

// The same of 0 and above, and of integers.
bool is_not_negative(const Expression& score, int number) {
  const Expression::Node& node = score.node(number);
  const auto both = [&](bool (*holds)(const Expression&, int)) {
    return holds(score, node.operands[0]) && holds(score, node.operands[1]);
  };
  switch (node.op) {
    case Operator::kConstant:
      return (node.real ? node.number : static_cast<double>(node.value)) >= 0;
    case Operator::kAdd:
    case Operator::kMul:
    case Operator::kMin:
      return both(is_not_negative);
    case Operator::kMax:
      return is_not_negative(score, node.operands[0]) || is_not_negative(score, node.operands[1]);
    case Operator::kAbs:
      return true;
    case Operator::kCall:
      if (node.function == Function::kReal) return is_not_negative(score, node.operands[0]);
      if (node.function == Function::kDivide) return both(is_not_negative);
      return node.function == Function::kExp || node.function == Function::kSqrt || node.function == Function::kSigmoid;
    default:
      return false;
  }
}

}  // namespace

bool is_named_score(std::string_view score) { return find_named(score) != nullptr; }

bool is_score_word(std::string_view word) {
  return is_expression_word(word) || is_named_score(word) ||
         std::ranges::any_of(kNames, [&](const ExpressionName& name) { return name.name == word; });
}

Result<Expression> parse_score(std::string_view score, const std::vector<Operand>& operands) {
  const NamedScore* const named = find_named(score);
  const std::vector<ExpressionName> names = names_with(operands);
  Result<Expression> expression = parse_real(named ? named->text : score, names);
  if (named || !expression.ok()) return expression;
  const Interval places = {-kMaxOwnMaskSeqLen, kMaxOwnMaskSeqLen}, rows = {0, kMaxOwnMaskSeqLen};
  std::vector<Interval> of_symbols = {{}, places, places, rows, rows, {0, kMostHeads - 1}, {1, kMostHeads}, {}};
  of_symbols.resize(names.size());
  const int64_t largest = largest_integer(*expression, of_symbols);
  if (largest > kLargestOwnInteger) {
    return Status(Code::kInvalidConfig,
                  fmt::format("its integers may be as large as {} where sequences have {} rows; allowed: up to {}, or "
                              "real numbers, as in 1.0 * row * col",
                              largest, kMaxOwnMaskSeqLen, kLargestOwnInteger));
  }
  return expression;
}

Result<Expression> parse_score(const HstuAttentionParams& params) {
  const std::vector<Operand> operands = own_operands(params.operands, params.heads);
  if (!params.has_softmax_score()) return parse_score(params.score, operands);
  Result<Expression> of_softmax = parse_score(params.softmax_score, operands);
  if (!of_softmax.ok() || params.num_softmax_heads == params.heads) return of_softmax;
  const Result<Expression> of_others = parse_score(params.score, operands);
  if (!of_others.ok()) return of_others;
  const Term softmax = {of_softmax->root()};
  ExpressionBuilder builder(*std::move(of_softmax));
  const Term other = builder.copy(*of_others);
  const Term has_softmax = builder.lt(builder.number("head"), builder.integer(params.num_softmax_heads));
  return std::move(builder).finish(builder.select(has_softmax, softmax, other));
}

std::string canonical_score(std::string_view score, const std::vector<Operand>& operands) {
  if (is_named_score(score)) return std::string(score);
  std::string text = to_text(parse_score(score, operands).value(), names_with(operands));
  for (const NamedScore& named : kNamedScores) {
    if (named.text == text) return std::string(named.name);
  }
  return text;
}

std::string canonical_softmax_score(std::string_view score, const std::vector<Operand>& operands) {
  std::string text = score.empty() ? "" : canonical_score(score, operands);
  return text == "identity" ? "" : text;
}

bool score_reads_positions(const HstuAttentionParams& params) {
  if (is_named(params)) return false;
  const Result<Expression> expression = parse_score(params);
  if (!expression.ok()) return false;
  return std::ranges::any_of(std::array{"row", "col", "n", "targets"},
                             [&](const char* symbol) { return expression->depends_on(symbol); });
}

bool is_positive(const Expression& score, int number) {
  const Expression::Node& node = score.node(number);
  switch (node.op) {
    case Operator::kConstant:
      return (node.real ? node.number : static_cast<double>(node.value)) > 0;
    case Operator::kAdd:
      return (is_positive(score, node.operands[0]) && is_not_negative(score, node.operands[1])) ||
             (is_not_negative(score, node.operands[0]) && is_positive(score, node.operands[1]));
    case Operator::kMax:
      return is_positive(score, node.operands[0]) || is_positive(score, node.operands[1]);
    case Operator::kMin:
      return is_positive(score, node.operands[0]) && is_positive(score, node.operands[1]);
    case Operator::kCall:
      return node.function == Function::kReal && is_positive(score, node.operands[0]);
    default:
      return false;
  }
}

bool score_is_finite(const Expression& score) {
  return std::ranges::all_of(score.nodes(), [&](const Expression::Node& node) {
    // An element read without an index is the same for the sequence's own pairs.
    if (node.op == Operator::kRead && node.real && node.operands[0] >= 0) return false;
    if (node.op != Operator::kCall || info_of(node.function).finite) return true;
    const Expression::Node& second = score.node(std::max(node.operands[1], 0));
    const bool by_constant = node.operands[1] >= 0 && second.op == Operator::kConstant;
    if (node.function == Function::kDivide) return by_constant && !is_number(score, node.operands[1], 0);
    return node.function == Function::kPow && by_constant && second.number >= 1 &&
           second.number == static_cast<double>(static_cast<int64_t>(second.number));
  });
}

// A small power is a product, and the root of one; of a positive number it is two to some number of times its
// logarithm.
double score_instructions(const Expression& score, int number) {
  const Expression::Node& node = score.node(number);
  if (node.op == Operator::kConstant || node.op == Operator::kSymbol) return 0;
  if (node.function == Function::kPow && score.node(node.operands[1]).op == Operator::kConstant) {
    const double exponent = score.node(node.operands[1]).number;
    if (exponent == 0.5 ||
        (exponent >= 0 && exponent <= 8 && exponent == static_cast<double>(static_cast<int>(exponent))))
      return 4;
  }
  constexpr double kReadInstructions = 5;  // a bound, an address and a load
  if (node.op == Operator::kRead) return kReadInstructions;
  if (node.function == Function::kPow && is_positive(score, node.operands[0]))
    return info_of(Function::kExp).instructions + info_of(Function::kLog2).instructions;
  return node.op == Operator::kCall ? info_of(node.function).instructions : 1;
}

double score_work(const HstuAttentionParams& params) {
  if (is_named(params)) return 1;
  const Result<Expression> expression = parse_score(params);
  return expression.ok() ? score_work(*expression) : 1;
}

double score_work(const Expression& score) {
  double instructions = 0;
  for (int node = 0; node < static_cast<int>(score.nodes().size()); ++node)
    instructions += score_instructions(score, node);
  return std::max(1.0, instructions / info_of(Function::kSilu).instructions);
}

}  // namespace hstujit
