#include "compiler/expression/bounds.h"

namespace hstujit {

Bounds::Bounds(const Expression& source, KernelBuilder& builder)
    : source_(source), builder_(builder), symbols_(source.symbols().size()), known_(source.nodes().size()) {}

std::optional<TermInterval> Bounds::of(int node) {
  auto& known = known_[static_cast<size_t>(node)];
  if (!known) {
    std::optional<TermInterval> found = compute(source_.node(node));
    if (!found && source_.node(node).boolean) found = {builder_.truth(false), builder_.truth(true)};
    known = found;
  }
  return *known;
}

TermInterval Bounds::symbol(int index) {
  const auto& given = symbols_[static_cast<size_t>(index)];
  if (given) return *given;
  const Expression::Symbol& symbol = source_.symbols()[static_cast<size_t>(index)];
  const Term point = symbol.boolean ? builder_.flag(symbol.name) : builder_.number(symbol.name);
  return {point, point};
}

std::optional<TermInterval> Bounds::compute(const Expression::Node& node) {
  if (node.op == Operator::kSymbol) return symbol(static_cast<int>(node.value));
  if (node.is_constant()) {
    const Term point = node.boolean ? builder_.truth(node.value != 0) : builder_.integer(node.value);
    return TermInterval{point, point};
  }
  std::array<TermInterval, 3> operands;
  bool points = true;
  for (size_t i = 0; i < operands.size() && node.operands[i] >= 0; ++i) {
    const std::optional<TermInterval> operand = of(node.operands[i]);
    if (!operand) return std::nullopt;
    operands[i] = *operand;
    points = points && is_point(*operand);
  }
  if (points) {
    const Term point = builder_.apply(node.op, operands[0].low, operands[1].low, operands[2].low);
    return TermInterval{point, point};
  }
  IntervalRules<KernelBuilder> rules(builder_);
  return rules.apply(node.op, operands[0], operands[1], operands[2], node.boolean);
}

}  // namespace hstujit
