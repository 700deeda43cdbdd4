// The number of valid pairs, counted row by row without looking at each, and the work that follows from it.
#include <algorithm>
#include <array>

#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

namespace {

// The ids of one sequence's positions; never decreasing with the position.
class Ids {
 public:
  Ids(const HstuAttentionParams& p, int64_t n, int64_t t) : n_(n), c_(p.contextual_seq_len), clipped_(p.num_targets) {
    max_id_ = c_ > 0 ? n - c_ + 1 - t : n - t;
  }

  int64_t max_id() const { return max_id_; }

  int64_t operator()(int64_t position) const {
    const int64_t id = c_ > 0 ? std::max<int64_t>(position - c_ + 1, 0) : position;
    return clipped_ ? std::min(id, max_id_) : id;
  }

  // How many positions have an id below `bound`: as ids do not decrease, these are the first ones.
  int64_t count_below(int64_t bound) const {
    if (clipped_ && bound > max_id_) return n_;
    if (bound <= 0) return 0;
    return std::min(n_, c_ > 0 ? bound + c_ - 1 : bound);
  }

 private:
  int64_t n_, c_, max_id_;
  bool clipped_;
};

// A union of column ranges [begin, end), kept in order of begin and then counted once.
class Columns {
 public:
  void add(int64_t begin, int64_t end) {
    if (begin >= end) return;
    size_t place = size_++;
    for (; place > 0 && ranges_[place - 1].begin > begin; --place) ranges_[place] = ranges_[place - 1];
    ranges_[place] = {begin, end};
  }

  int64_t count() const {
    int64_t total = 0, covered = 0;
    for (size_t index = 0; index < size_; ++index) {
      const auto [begin, end] = ranges_[index];
      total += std::max<int64_t>(end - std::max(begin, covered), 0);
      covered = std::max(covered, end);
    }
    return total;
  }

 private:
  struct Range {
    int64_t begin = 0, end = 0;
  };
  static constexpr size_t kMost = 5;  // diagonal, smaller ids, larger ids, own group, context
  std::array<Range, kMost> ranges_{};
  size_t size_ = 0;
};

int64_t count_row(const HstuAttentionParams& p, const Ids& id, int64_t i, int64_t n, int64_t t) {
  Columns columns;
  const int64_t history = std::max<int64_t>(n - t, 0);
  if (p.full_mask) return n;
  if (p.semi_local()) {
    if (i >= history) return history;
    const int64_t k2 = std::max(p.sla_k2, p.contextual_seq_len);
    columns.add(0, std::min(k2, i + 1));
    columns.add(std::max(k2, i - p.sla_k1 + 1), i + 1);
    return columns.count();
  }
  const int64_t own = id(i);
  const bool windowed =
      p.max_attn_len > 0 && !(p.min_full_attn_seq_len > 0 && own >= id.max_id() - p.min_full_attn_seq_len);
  columns.add(i, i + 1);
  columns.add(windowed ? id.count_below(own - p.max_attn_len) : 0, id.count_below(own));
  if (!p.causal) columns.add(id.count_below(own + 1), windowed ? id.count_below(own + p.max_attn_len + 1) : n);
  if (p.num_targets && i >= history) columns.add(i - (i - history) % p.target_group_size, i + 1);
  if (p.contextual_seq_len > 0 && own == 0) columns.add(0, id.count_below(id.max_id()));
  return columns.count();
}

}  // namespace

int64_t hstu_attention_valid_pairs(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t first) {
  if (!params.num_targets) t = 0;
  if (params.full_mask) return (n - first) * n;
  const Ids id(params, n, t);
  int64_t pairs = 0;
  for (int64_t i = first; i < n; ++i) pairs += count_row(params, id, i, n, t);
  return pairs;
}

Work AttentionSpec::work(Direction direction, const Lengths& lengths) const {
  const bool forward = direction == Direction::kForward;
  double pairs = 0, rows = 0, queries = 0, biases = 0;
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    const int64_t n = lengths.rows[b];
    const int64_t targets = lengths.num_targets.empty() ? 0 : lengths.num_targets[b];
    const int64_t own = query_rows_ == QueryRows::kAll ? n : lengths.delta_rows[b];
    pairs += static_cast<double>(hstu_attention_valid_pairs(params_, n, targets, std::max<int64_t>(n - own, 0)));
    rows += static_cast<double>(n);
    queries += static_cast<double>(own);
    biases += static_cast<double>(own) * static_cast<double>(n);
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
  // Of rab the positions of each sequence are read once, its rows of q by its rows of k; of drab every element is
  // written, whatever the sequence's rows.
  if (params_.has_rab()) {
    const auto longest = static_cast<double>(lengths.max_seq_len), bias_heads = static_cast<double>(params_.rab_heads);
    const double batch = static_cast<double>(lengths.rows.size());
    bytes += bias_heads * biases * element;
    if (!forward && params_.drab) bytes += bias_heads * batch * longest * longest * element;
  }
  if (params_.has_attn_scale()) {
    const double factors = params_.attn_scale == "rows" ? queries : 1;
    bytes += factors * sizeof(float) * (!forward && params_.dattn_scale ? 2 : 1);
  }
  return {2 * heads * products * pairs, bytes};
}

}  // namespace hstujit
