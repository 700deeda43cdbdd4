// The number of valid pairs, counted by the columns that each row sees, and the work that follows from it.
#include <algorithm>

#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "compiler/spec/operators/hstu_attention/visible_columns.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

// Counts a mask whose spans may hold more columns than are valid: one by one, of rows at equal distances where all
// of them would be too many.
int64_t counted_pairs(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t first) {
  constexpr int64_t kMostCounted = int64_t{1} << 20;
  VisibleColumns visible(params, n, t);
  const int64_t step = std::max<int64_t>(1, (n - first) * n / kMostCounted);
  int64_t pairs = 0, rows = 0;
  for (int64_t i = first; i < n; i += step, ++rows) {
    for (const Span& span : visible.of(i, i)) {
      for (int64_t j = span.begin; j < span.end; ++j) pairs += hstu_attention_valid(params, i, j, n, t) ? 1 : 0;
    }
  }
  return rows == 0 ? 0 : pairs * std::max<int64_t>(n - first, 0) / rows;
}

}  // namespace

int64_t hstu_attention_valid_pairs(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t first, int64_t c) {
  if (params.has_own_mask()) return counted_pairs(params, n, t, first);
  VisibleColumns visible(params, n, t, c);
  int64_t pairs = 0;
  for (int64_t i = first; i < n; ++i) {
    for (const Span& span : visible.of(i, i)) pairs += span.end - span.begin;
  }
  return pairs;
}

Work AttentionSpec::work(Direction direction, const Lengths& lengths) const {
  const bool forward = direction == Direction::kForward;
  double pairs = 0, rows = 0, queries = 0, positions = 0;
  const std::vector<int64_t>& own_rows = lengths.rows_of(query_rows_ == QueryRows::kAll ? kSequenceAxis : kQueryAxis);
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    const int64_t n = lengths.rows[b];
    const int64_t targets = lengths.num_targets.empty() ? 0 : lengths.num_targets[b];
    const int64_t contexts = lengths.num_contexts.empty() ? 0 : std::clamp<int64_t>(lengths.num_contexts[b], 0, n);
    const int64_t own = own_rows[b], first = std::max<int64_t>(n - own, 0);
    pairs += static_cast<double>(hstu_attention_valid_pairs(params_, n, targets, first, contexts));
    rows += static_cast<double>(n);
    queries += static_cast<double>(own);
    positions += static_cast<double>(own) * static_cast<double>(n);
  }
  const auto heads = static_cast<double>(params_.heads);
  const auto qk = static_cast<double>(params_.attn_dim), v = static_cast<double>(params_.hidden_dim);
  // Products per pair: S, P v; backward S, dP, dS k, dS^T q, P^T dout. Tensors: q, k, v, out; backward q, k, v, dout,
  // dq, dk, dv.
  const double products = forward ? qk + v : 3 * qk + 2 * v;
  const double of_queries = forward ? qk + v : 2 * qk + v;
  const double of_rows = forward ? qk + v : 2 * qk + 2 * v;
  const auto element = static_cast<double>(size_of(params_.dtype));
  double bytes = heads * (queries * of_queries + rows * of_rows) * element;
  // An operand is read once, and of its gradient every element is written, whatever the sequence's rows.
  const OperandSizes sizes = {static_cast<int64_t>(lengths.rows.size()), static_cast<int64_t>(rows),
                              static_cast<int64_t>(queries), lengths.max_seq_len, positions};
  for (const Operand& operand : operands_) {
    if (operand.use == OperandUse::kMask) continue;
    const auto operand_element = static_cast<double>(size_of(operand.dtype));
    bytes += elements_read(operand, sizes) * operand_element;
    const double times = params_.adds_gradients ? 2 : 1;
    if (!forward && operand.gradient) bytes += times * elements(operand, sizes) * operand_element;
  }
  return {2 * heads * products * pairs, bytes};
}

}  // namespace hstujit
