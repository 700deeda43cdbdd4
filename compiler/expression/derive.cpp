#include "compiler/expression/derive.h"

#include "compiler/expression/bits.h"
#include "compiler/expression/ranges.h"

namespace hstujit {

namespace {

void set_range(Bounds& bounds, const Expression& condition, KernelBuilder& builder, const SymbolRange& range) {
  const int symbol = condition.symbol(range.symbol);
  if (symbol >= 0) bounds.set(symbol, {builder.number(range.first), builder.number(range.last)});
}

ExpressionFunction finish(KernelBuilder builder, const TermInterval& results) {
  return {std::move(builder).finish(results.low), {results.low.node, results.high.node}};
}

}  // namespace

ExpressionFunction derive_truths(const Expression& condition, std::span<const SymbolRange> ranges) {
  KernelBuilder builder;
  Bounds bounds(condition, builder);
  for (const SymbolRange& range : ranges) set_range(bounds, condition, builder, range);
  const TermInterval truths = *bounds.of(condition.root());
  return finish(std::move(builder), truths);
}

ExpressionFunction derive_range(const Expression& condition, std::string_view unknown, const SymbolRange& range,
                                std::string_view size) {
  KernelBuilder builder;
  Bounds bounds(condition, builder);
  set_range(bounds, condition, builder, range);
  Ranges ranges(condition, builder, bounds, condition.symbol(unknown), builder.number(size));
  const TermInterval ends = ranges.ends(ranges.where(condition.root()));
  return finish(std::move(builder), ends);
}

std::optional<ExpressionFunction> derive_word(const Expression& condition, std::string_view unknown,
                                              std::string_view first) {
  KernelBuilder builder;
  Bounds bounds(condition, builder);
  Bits bits(condition, builder, bounds, condition.symbol(unknown), builder.number(first));
  const std::optional<Term> word = bits.of(condition.root());
  if (!word) return std::nullopt;
  return ExpressionFunction{std::move(builder).finish(*word), {word->node}};
}

}  // namespace hstujit
