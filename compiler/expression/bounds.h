// Intervals of an expression's nodes as expressions: where symbols lie in intervals whose ends are terms, terms that
// are the ends of an interval that holds a node's value. Sound always; exact where each symbol occurs once on the way.
#pragma once

#include <optional>
#include <vector>

#include "compiler/expression/kernel_form.h"

namespace hstujit {

using TermInterval = Ends<Term>;
inline bool is_point(const TermInterval& interval) { return interval.low.node == interval.high.node; }

class Bounds {
 public:
  // Terms are the builder's. A symbol that is not set is one of the same name there.
  Bounds(const Expression& source, KernelBuilder& builder);

  void set(int symbol, const TermInterval& interval) { symbols_[static_cast<size_t>(symbol)] = interval; }
  // Nothing of an integer that has no rule. A truth without one may be either.
  std::optional<TermInterval> of(int node);

 private:
  std::optional<TermInterval> compute(const Expression::Node& node);
  TermInterval symbol(int index);

  const Expression& source_;
  KernelBuilder& builder_;
  std::vector<std::optional<TermInterval>> symbols_;               // by symbol
  std::vector<std::optional<std::optional<TermInterval>>> known_;  // by node
};

}  // namespace hstujit
