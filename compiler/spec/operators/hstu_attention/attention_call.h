// One call of the attention operators in float64, as docs/ops-attention.md writes it: its inputs by row and head, its
// sequences, its score function. The reference and the variances of errors both walk over it.
#pragma once

#include <functional>
#include <vector>

#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "compiler/spec/operators/hstu_attention/dropout.h"
#include "compiler/spec/operators/hstu_attention/score_formula.h"

namespace hstujit {

// Sequence b: its rows in k and v, the last t of which are targets and the first c contexts, and its last rows in q and
// out. Rows of q that lie before the sequence see nothing.
struct SequenceRows {
  int64_t b, first, n, t, c;
  int64_t first_query, queries;
};

// The tensors are those of `values`, which must outlive it; null is what the call has not.
struct AttentionCall {
  AttentionCall(const AttentionSpec& spec, Direction direction, const std::vector<HostValue>& values);

  const HstuAttentionParams& params;
  const Operand *bias_operand, *factor_operand;  // null where the call has none
  const double *q, *k, *v, *dout, *biases, *factors;
  bool returns_dbias, returns_dfactors;
  int64_t max_seq_len;
  double alpha, scale;
  AttentionDropout dropout;
  ScoreFormula score, softmax_score;  // of heads without softmax, and what the others normalise

  int64_t rows() const { return offsets_.back(); }        // of k and v
  int64_t query_rows() const { return queries_.back(); }  // of q and out
  int64_t sequences() const { return static_cast<int64_t>(offsets_.size()) - 1; }

  OperandSizes sizes() const { return {sequences(), rows(), query_rows(), max_seq_len}; }

  // Where the bias and its gradient have the pair (i, j) of sequence b.
  int64_t bias_at(int64_t b, int64_t head, int64_t i, int64_t j) const {
    const int64_t heads = bias_operand->heads;
    return ((b * heads + head / (params.heads / heads)) * max_seq_len + i) * max_seq_len + j;
  }
  double bias(int64_t b, int64_t head, int64_t i, int64_t j) const {
    return biases == nullptr ? 0 : biases[bias_at(b, head, i, j)];
  }
  // Where the factors and their gradient have this row of q.
  int64_t factor_at(int64_t query) const { return factor_operand->kind == &row_kind() ? query : 0; }
  // What the scores of this row of q are multiplied by.
  double factor(int64_t query) const { return factors == nullptr ? 1 / scale : factors[factor_at(query)]; }
  // Whether row i of the sequence, which is one of those of q, sees column j.
  bool valid(const SequenceRows& rows, int64_t head, int64_t i, int64_t j) const;
  ScorePlace pair(const SequenceRows& rows, int64_t head, int64_t i, int64_t j) const {
    return {i, j, rows.n, rows.t, head, rows.first, rows.b};
  }
  // By what dropout multiplies P of a pair.
  double kept(const SequenceRows& rows, int64_t head, int64_t i, int64_t j) const {
    return dropout.factor(rows.first, head, i, j);
  }
  // Where a tensor of so many columns has a row and head.
  int64_t place(int64_t row, int64_t head, int64_t width) const { return (row * params.heads + head) * width; }

  // Calls body(sequence, head) for every head of the sequences that are `chosen`, of all where that is empty; on
  // several threads, but heads that share one of the gradient of the bias one after the other.
  void for_each_head(const std::vector<bool>& chosen,
                     const std::function<void(const SequenceRows&, int64_t head)>& body) const;

 private:
  std::vector<int64_t> offsets_, queries_;   // where the sequences' rows begin, in k and in q
  std::vector<int64_t> targets_, contexts_;  // of each sequence; empty: the call takes none
  const int64_t* intervals_ = nullptr;       // attn_func, where the call takes it
  bool mask_reads_ = false;
};

}  // namespace hstujit
