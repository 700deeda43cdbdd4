// Solves a condition for one symbol ("the unknown"): terms of a range [low, high) of [0, size) outside of which the
// condition is false, while other symbols lie in intervals. Sound always; tight where the unknown enters through
// monotone operations and the valid values have no holes.
#pragma once

#include <optional>

#include "compiler/expression/inverse.h"

namespace hstujit {

// An end that is not there is the universe's, 0 or the size. `none`: the range is empty whatever the symbols are.
struct TermRange {
  std::optional<Term> low, high;  // inclusive, exclusive
  std::optional<Term> condition;  // where there is one and it is false, the range is empty
  bool none = false;
  bool never_empty = false;  // low < high is known, before clipping to the universe
};

class Ranges : Inverse<Ranges, TermRange> {
 public:
  // `known` has every symbol but the unknown.
  Ranges(const Expression& source, KernelBuilder& builder, Bounds& known, int unknown, Term size)
      : Inverse(source, builder, known, unknown), size_(size) {}

  // Where `condition` may be `wanted`.
  TermRange where(int condition, bool wanted = true);

  // The ends, clipped to [0, size).
  TermInterval ends(const TermRange& range);

 private:
  friend Inverse;

  TermRange compared(const Node& node, bool wanted);
  static TermRange anything() { return {}; }
  Optional of_unknown(Term bound, bool below);
  static TermRange if_true(Term condition);
  static Optional without_rule() { return anything(); }
  TermRange both(const Optional& a, const Optional& b);
  TermRange either(const Optional& a, const Optional& b);
  Optional selected(const Node& select, Term bound, bool below);
  TermRange without_emptiness(const TermRange& range);
  Term next(Term value) { return e_.add(value, e_.integer(1)); }

  Term size_;
};

}  // namespace hstujit
