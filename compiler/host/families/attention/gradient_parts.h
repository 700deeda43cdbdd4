// Parts of the gradients of operands that items of backward leave: of sums over rows, columns or heads, which numbers
// each row of k and head has; of sums over all pairs, one of each element for every chain of items.
#pragma once

#include <vector>

#include "compiler/host/arguments.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "compiler/spec/operators/hstu_attention/operands/sums.h"

namespace hstujit {

// First rows of the sequences in k and in q. More rows of q than the sequence has lie before it.
struct SequenceOffsets {
  std::vector<int64_t> keys, queries;
};

class GradientParts {
 public:
  explicit GradientParts(const AttentionSpec& spec);

  // The sum of an operand's gradient that items of rows, or of columns, leave.
  struct Sum {
    const Operand* operand;
    bool of_columns;
    int64_t part;
  };

  // How many chains the items of rows form where there are sums over all pairs.
  static constexpr int64_t kChains = 64;
  const OperandSums& sums_of_pairs() const { return sums_of_pairs_; }

  // All of them, for so many rows of k. Those of chains come first, those of rows at first().
  int64_t size(int64_t rows) const { return first() + rows * spec_.params().heads * count(); }
  int64_t first() const { return kChains * sums_of_pairs_.count(); }

  int64_t count() const { return static_cast<int64_t>(sums_.size()) + (spec_.params().has_softmax() ? 2 : 0); }
  const std::vector<Sum>& sums() const { return sums_; }
  // Two more numbers of a row, in heads with softmax, which the other items read: the logarithm of the sum of exp(S),
  // and the sum of P dP.
  int64_t log_sum() const { return static_cast<int64_t>(sums_.size()); }
  int64_t mean() const { return log_sum() + 1; }

  // Adds the parts up, in an order that does not depend on threads, and writes the gradients of the rows of sequences.
  void finish(const Arguments& arguments, const float* parts, const SequenceOffsets& offsets) const;

 private:
  void finish_sums_of_pairs(const Arguments& arguments, const float* parts) const;

  const AttentionSpec& spec_;
  OperandSums sums_of_pairs_;
  std::vector<Sum> sums_;
};

}  // namespace hstujit
