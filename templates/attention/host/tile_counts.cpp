#include "templates/attention/host/tile_counts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/support/integers.h"

namespace hstujit {

namespace {

// Columns that the rows [first, last] of a sequence see: a few ranges, which may overlap.
class VisibleColumns {
 public:
  VisibleColumns(const HstuAttentionParams& params, const SequenceSize& sequence, int64_t first, int64_t last)
      : params_(params), rows_(sequence.rows), history_(std::max<int64_t>(sequence.rows - sequence.targets, 0)) {
    if (params.full_mask) {
      add(0, rows_);
    } else if (params.semi_local()) {
      add_semi_local(first, last);
    } else {
      add_by_kind_of_row(first, last);
    }
  }

  // Blocks of `block_n` columns, counted from the first visible column on, that a range reaches into.
  int64_t blocks(int64_t block_n) {
    std::sort(ranges_.begin(), ranges_.begin() + size_,
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    int64_t total = 0, counted = 0;  // blocks below `counted` are in the total
    for (size_t i = 0; i < size_; ++i) {
      const int64_t begin = std::max(counted, (ranges_[i].begin - ranges_[0].begin) / block_n);
      const int64_t end = ceil_div(ranges_[i].end - ranges_[0].begin, block_n);
      total += std::max<int64_t>(0, end - begin);
      counted = std::max(counted, end);
    }
    return total;
  }

 private:
  struct Range {
    int64_t begin, end;
  };

  void add(int64_t begin, int64_t end) {
    if (begin < end) ranges_[size_++] = {begin, end};
  }

  void add_semi_local(int64_t first, int64_t last) {
    const int64_t global = std::max(params_.sla_k2, params_.contextual_seq_len);
    const int64_t end = std::min(last + 1, history_);
    if (first < history_) {
      add(0, std::min(global, end));
      if (params_.sla_k1 > 0) add(std::max(global, first - params_.sla_k1 + 1), end);
    }
    if (last >= history_) add(0, history_);
  }

  // Contextual rows, rows with a window, rows of the full tail and targets, in this order.
  void add_by_kind_of_row(int64_t first, int64_t last) {
    const int64_t context = params_.contextual_seq_len, window = params_.max_attn_len;
    const int64_t tail = params_.min_full_attn_seq_len;
    const auto id = [&](int64_t row) { return std::max<int64_t>(0, row - std::max<int64_t>(0, context - 1)); };
    const int64_t max_id = id(history_);
    const bool wide = window == 0 || max_id <= window;  // no window ends within the history
    const int64_t windowed_end = window == 0 ? history_ : std::max(context, std::min(history_, history_ - tail));

    if (first < context) {
      const bool sees_targets = !params_.causal && (wide || max_id <= tail);
      add(0, sees_targets ? rows_ : history_);
    }
    if (const int64_t from = std::max(first, context), to = std::min(last, windowed_end - 1); from <= to) {
      const bool sees_targets = window == 0 || max_id <= id(to) + window;
      const int64_t end = sees_targets ? rows_ : std::min(rows_, to + window + 1);
      add(window == 0 || id(from) <= window ? 0 : from - window, params_.causal ? to + 1 : end);
    }
    if (const int64_t to = std::min(last, history_ - 1); std::max(first, windowed_end) <= to) {
      add(0, params_.causal ? to + 1 : rows_);
    }
    if (const int64_t from = std::max(first, history_); from <= last) {
      add(wide || tail > 0 ? 0 : history_ - window, history_);
      add(from - (from - history_) % params_.target_group_size, last + 1);
    }
  }

  const HstuAttentionParams& params_;
  const int64_t rows_;
  const int64_t history_;  // rows before the targets
  std::array<Range, 5> ranges_ = {};
  size_t size_ = 0;
};

}  // namespace

SequenceSize assumed_sequence(const HstuAttentionParams& params, double rows) {
  constexpr int64_t kTargets = 20;
  SequenceSize sequence;
  sequence.rows = std::max<int64_t>(1, std::llround(rows));
  if (params.num_targets) sequence.targets = std::min(sequence.rows, kTargets);
  return sequence;
}

std::vector<SequenceSize> assumed_sequences(const HstuAttentionParams& params, const ProblemSize& size) {
  constexpr int kLengths = 5;
  const auto max_rows = static_cast<double>(std::min(size.max_seq_len, kLongestCounted));
  const double spread = std::min(size.mean_fill, 1 - size.mean_fill);
  std::vector<SequenceSize> sequences;
  for (int i = 0; i < kLengths; ++i) {
    const double fill = size.mean_fill + spread * ((2 * i + 1.0) / kLengths - 1);
    sequences.push_back(assumed_sequence(params, fill * max_rows));
  }
  return sequences;
}

double balanced_batch(const ProblemSize& size) {
  constexpr double kRows = 256 * 1024, kSequences = 16;
  const auto max_rows = static_cast<double>(std::min(size.max_seq_len, kLongestCounted));
  return std::min(static_cast<double>(size.batch), std::max(kSequences, kRows / max_rows));
}

std::vector<int64_t> count_column_blocks(const HstuAttentionParams& params, const SequenceSize& sequence,
                                         int64_t block_m, int64_t block_n) {
  std::vector<int64_t> blocks;
  blocks.reserve(static_cast<size_t>(ceil_div(sequence.rows, block_m)));
  for (int64_t row = sequence.first; row < sequence.rows; row += block_m) {
    const int64_t last = std::min(row + block_m, sequence.rows) - 1;
    blocks.push_back(VisibleColumns(params, sequence, row, last).blocks(block_n));
  }
  return blocks;
}

TileCounts count_tiles(const HstuAttentionParams& params, const SequenceSize& sequence, int64_t block_m,
                       int64_t block_n) {
  TileCounts counts;
  for (const int64_t blocks : count_column_blocks(params, sequence, block_m, block_n)) {
    counts.row_tiles += 1;
    counts.column_blocks += static_cast<double>(blocks);
  }
  return counts;
}

}  // namespace hstujit
