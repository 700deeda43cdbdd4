// What items of backward leave for the gradients of operands that are sums over rows, columns or heads: which numbers
// each row of q and head has.
#pragma once

#include <vector>

#include "compiler/host/arguments.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

class GradientParts {
 public:
  explicit GradientParts(const AttentionSpec& spec);

  // The sum of an operand's gradient that items of rows, or of columns, leave.
  struct Sum {
    const Operand* operand;
    bool of_columns;
    int64_t part;
  };

  int64_t count() const { return static_cast<int64_t>(sums_.size()); }
  const std::vector<Sum>& sums() const { return sums_; }

  // Adds the parts up, in an order that does not depend on threads, and writes the gradients of rows [begin, end).
  void finish(const Arguments& arguments, const float* parts, int64_t begin, int64_t end) const;

 private:
  const AttentionSpec& spec_;
  std::vector<Sum> sums_;
};

}  // namespace hstujit
