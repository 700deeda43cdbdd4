// How a launch of attention is cut into items, and which function computes one.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/host/families/attention/attention_item.h"
#include "compiler/host/families/attention/gradient_parts.h"
#include "compiler/host/operator.h"
#include "compiler/spec/limits.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "compiler/support/integers.h"

namespace hstujit {

namespace {

// Rows of one item, at most. A tile is packed once for all rows of the item, so more rows cost less packing; fewer
// balance better over threads.
constexpr int64_t kItemRows = 256;

class HostAttention final : public HostOperator {
 public:
  HostAttention(std::shared_ptr<const AttentionSpec> spec, Direction direction, const RegisterTile& tile)
      : spec_(std::move(spec)),
        params_(spec_->params()),
        query_rows_(spec_->query_rows()),
        direction_(direction),
        parts_(*spec_),
        item_rows_(round_down(kItemRows, tile.rows)) {}

  Status emit(ItemFunction& function) override {
    HSTUJIT_ASSIGN_OR_RETURN(AttentionItem item, AttentionItem::create(*spec_, function));
    return direction_ == Direction::kForward ? emit_attention_forward(item, item_rows_)
                                             : emit_attention_backward(item, item_rows_);
  }

  Result<std::vector<WorkItem>> items(const Arguments& arguments) const override;

  int64_t parts_size(const Arguments& arguments) const override {
    return direction_ == Direction::kForward ? 0 : parts_.size(arguments.size("k", 0));
  }
  void finish(const Arguments& arguments, const float* parts) const override;

 private:
  // The rows of each sequence in k, and in q.
  SequenceOffsets offsets_of(const Arguments& arguments) const;

  // The rows of one head of a sequence.
  struct Rows {
    int64_t sequence, start, n, targets, head;
    int64_t query_begin, first;  // its first row of q, and which row of the sequence that is: below 0, one before it

    int64_t query_start() const { return query_begin - first; }          // where its row 0 would be
    int64_t first_query() const { return std::max<int64_t>(first, 0); }  // the first of its rows that q has
  };
  void clear_rows_before(const Arguments& arguments, const SequenceOffsets& offsets) const;
  void add_forward(const Rows& rows, std::vector<WorkItem>& items) const;
  WorkItem backward_item(const Rows& rows, int64_t begin, int64_t end, int64_t side) const;
  void add_backward(const Rows& rows, std::vector<WorkItem>& items) const;
  void add_softmax(const Rows& rows, std::vector<WorkItem>& items) const;
  // Adds the items of the gradient of an operand of pairs, each of them of one of its heads.
  void add_pairs(const Rows& rows, const Operand& operand, int64_t side, int64_t max_seq_len,
                 std::vector<WorkItem>& items) const;

  std::shared_ptr<const AttentionSpec> spec_;
  const HstuAttentionParams& params_;
  QueryRows query_rows_;
  Direction direction_;
  GradientParts parts_;
  int64_t item_rows_;
};

SequenceOffsets HostAttention::offsets_of(const Arguments& arguments) const {
  const int64_t sequences = arguments.symbol("B");
  SequenceOffsets offsets;
  offsets.keys = clamped_offsets(arguments, "seq_offsets", sequences, arguments.size("k", 0));
  if (query_rows_ == QueryRows::kAll) {
    offsets.queries = offsets.keys;
  } else if (query_rows_ == QueryRows::kLastJagged) {
    offsets.queries = clamped_offsets(arguments, "seq_offsets_q", sequences, arguments.size("q", 0));
  } else {
    for (int64_t b = 0; b <= sequences; ++b) offsets.queries.push_back(b * arguments.integer("max_delta_len"));
  }
  return offsets;
}

void HostAttention::add_forward(const Rows& rows, std::vector<WorkItem>& items) const {
  // Rows of q before the sequence: rows of an empty one, which see nothing.
  for (int64_t begin = 0; begin < -rows.first; begin += item_rows_) {
    const int64_t end = std::min(begin + item_rows_, -rows.first);
    items.push_back({{rows.start, 0, 0, rows.head, begin, end, rows.query_begin, rows.sequence}, 0});
  }
  for (int64_t begin = rows.first_query(); begin < rows.n; begin += item_rows_) {
    const int64_t end = std::min(begin + item_rows_, rows.n);
    const double columns = static_cast<double>(params_.causal ? end : rows.n);
    items.push_back({{rows.start, rows.n, rows.targets, rows.head, begin, end, rows.query_start(), rows.sequence},
                     static_cast<double>(end - begin) * columns});
  }
}

WorkItem HostAttention::backward_item(const Rows& rows, int64_t begin, int64_t end, int64_t side) const {
  WorkItem item;
  item.coordinates = {rows.start,    rows.n, rows.targets, rows.head,         begin, end, rows.query_start(),
                      rows.sequence, 0,      side,         rows.first_query()};
  return item;
}

void HostAttention::add_backward(const Rows& rows, std::vector<WorkItem>& items) const {
  for (int64_t tile = 0; tile < rows.n; tile += item_rows_) {
    for (const AttentionSide side : {kRowSide, kColumnSide}) {
      const int64_t begin = side == kRowSide ? rows.first_query() + tile : tile;
      if (begin >= rows.n) continue;
      const int64_t end = std::min(begin + item_rows_, rows.n);
      // Products of one pair; rows see columns before them, columns are seen by rows behind them.
      const int64_t products[] = {2 * params_.attn_dim + params_.hidden_dim,
                                  2 * (params_.attn_dim + params_.hidden_dim)};
      const int64_t others[] = {params_.causal ? end : rows.n,
                                rows.n - std::max(params_.causal ? begin : 0, rows.first_query())};
      items.push_back(backward_item(rows, begin, end, side));
      items.back().cost = static_cast<double>((end - begin) * others[side]) * static_cast<double>(products[side]);
      if (side == kColumnSide || parts_.sums_of_pairs().count() == 0) continue;
      items.back().chain = static_cast<int64_t>(items.size()) / 2 % GradientParts::kChains;
      items.back().coordinates[kChain] = items.back().chain;
    }
  }
}

void HostAttention::add_softmax(const Rows& rows, std::vector<WorkItem>& items) const {
  for (int64_t begin = rows.first_query(); begin < rows.n; begin += item_rows_) {
    const int64_t end = std::min(begin + item_rows_, rows.n);
    items.push_back(backward_item(rows, begin, end, kSoftmaxSide));
    items.back().cost = static_cast<double>((end - begin) * (params_.causal ? end : rows.n)) *
                        static_cast<double>(params_.attn_dim + params_.hidden_dim);
    items.back().first = true;
  }
}

void HostAttention::add_pairs(const Rows& rows, const Operand& operand, int64_t side, int64_t max_seq_len,
                              std::vector<WorkItem>& items) const {
  if (rows.head >= operand.heads) return;
  const int64_t products = (params_.attn_dim + params_.hidden_dim) * (params_.heads / operand.heads);
  for (int64_t begin = rows.first_query(); begin < rows.n; begin += item_rows_) {
    const int64_t end = std::min(begin + item_rows_, rows.n);
    items.push_back(backward_item(rows, begin, end, side));
    items.back().cost =
        static_cast<double>((end - begin) * (params_.causal ? end : rows.n)) * static_cast<double>(products);
  }
  // Rows before those of q and behind the sequence, which are as those of an empty one.
  Rows empty = rows;
  empty.n = empty.targets = 0;
  for (const auto& [first, last] : {std::pair{int64_t{0}, rows.first_query()}, std::pair{rows.n, max_seq_len}}) {
    for (int64_t begin = first; begin < last; begin += item_rows_)
      items.push_back(backward_item(empty, begin, std::min(begin + item_rows_, last), side));
  }
}

void HostAttention::finish(const Arguments& arguments, const float* parts) const {
  const bool has_parts = parts_.count() + parts_.sums_of_pairs().count() > 0;
  if (direction_ == Direction::kForward || (!has_parts && query_rows_ == QueryRows::kAll)) return;
  const SequenceOffsets offsets = offsets_of(arguments);
  if (query_rows_ != QueryRows::kAll) clear_rows_before(arguments, offsets);
  if (has_parts) parts_.finish(arguments, parts, offsets);
}

// Zeroes dq of rows of q before their sequence, which see nothing.
void HostAttention::clear_rows_before(const Arguments& arguments, const SequenceOffsets& offsets) const {
  const auto element = static_cast<int64_t>(size_of(params_.dtype));
  for (size_t b = 0; b + 1 < offsets.queries.size(); ++b) {
    const int64_t end = offsets.queries[b + 1] - (offsets.keys[b + 1] - offsets.keys[b]);
    for (int64_t row = offsets.queries[b]; row < end; ++row) {
      for (int64_t head = 0; head < params_.heads; ++head) {
        const int64_t place = row * arguments.stride("dq", 0) + head * arguments.stride("dq", 1);
        std::memset(static_cast<std::byte*>(arguments.data("dq")) + place * element, 0,
                    static_cast<size_t>(params_.attn_dim * element));
      }
    }
  }
}

Result<std::vector<WorkItem>> HostAttention::items(const Arguments& arguments) const {
  const int64_t sequences = arguments.symbol("B");
  const int64_t max_seq_len = arguments.integer("max_seq_len");
  if (!params_.has_factors() && arguments.size("q", 0) > 0 && arguments.integer("scaling_seqlen") <= 0 &&
      max_seq_len <= 0) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("max_seq_len is {}; it must be at least 1 where scaling_seqlen is not positive", max_seq_len));
  }
  std::vector<WorkItem> items;
  const auto [offsets, queries] = offsets_of(arguments);
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    const auto b = static_cast<size_t>(sequence);
    const int64_t start = offsets[b], n = offsets[b + 1] - start;
    const int64_t first = n - (queries[b + 1] - queries[b]);  // the first row that q has
    if (n > kMaxSeqLen) {
      return Status(Code::kUnsupported,
                    fmt::format("sequence {} has {} rows; the host backend takes at most {}", sequence, n, kMaxSeqLen));
    }
    const auto pairs = std::ranges::find(spec_->operands(), &pair_kind(), &Operand::kind);
    if (pairs != spec_->operands().end() && n > max_seq_len) {
      return Status(Code::kInvalidArgument,
                    fmt::format("sequence {} has {} rows; {} has {} for max_seq_len, which is {}", sequence, n,
                                pairs->name, pairs->use == OperandUse::kBias ? "biases" : "elements", max_seq_len));
    }
    const auto count = [&](bool taken, std::string_view name) {
      return taken ? std::clamp<int64_t>(arguments.element(name, sequence), 0, n) : 0;
    };
    const int64_t targets = count(params_.num_targets, "num_targets");
    const int64_t contexts = count(params_.num_contexts, "num_contexts");
    const size_t first_item = items.size();
    for (int64_t head = 0; head < params_.heads; ++head) {
      const Rows rows = {sequence, start, n, targets, head, queries[b], first};
      direction_ == Direction::kForward ? add_forward(rows, items) : add_backward(rows, items);
      if (direction_ == Direction::kBackward && params_.is_softmax_head(head)) add_softmax(rows, items);
      if (direction_ == Direction::kForward) continue;
      if (params_.returns_dbias()) add_pairs(rows, *spec_->operand(OperandUse::kBias), kBiasSide, max_seq_len, items);
      const std::vector<const Operand*> operands = pair_gradients(*spec_);
      for (size_t i = 0; i < operands.size(); ++i)
        add_pairs(rows, *operands[i], kPairSide + static_cast<int64_t>(i), max_seq_len, items);
    }
    for (size_t i = first_item; i < items.size(); ++i) items[i].coordinates[kContexts] = contexts;
  }
  return items;
}

}  // namespace

Result<HostOperatorPtr> make_host_attention(OpSpecPtr spec, Direction direction, const RegisterTile& tile) {
  return HostOperatorPtr(
      std::make_unique<HostAttention>(std::static_pointer_cast<const AttentionSpec>(spec), direction, tile));
}

}  // namespace hstujit
