#include "operations/tuning/data/adversarial_lengths.h"

#include <algorithm>
#include <array>
#include <random>

#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

// Operations of the float64 reference that the long sequence of a validation may cost: a second or two on two cores. Of
// an operator that knows no sequences, such as a product, five times as many for all rows: their loops are simple.
constexpr double kReferenceFlops = 2e9, kAllReferenceFlops = 1e10;

// Elements of the long sequence's results: each candidate's are copied and compared one by one. Of an operator that
// knows no sequences, twice as many in all.
constexpr int64_t kMaxCompared = int64_t{1} << 22;

// Elements of the tensors that have a part for each sequence, of a size that follows max_seq_len: the reference
// computes in float64, in the memory of whatever machine tunes. As many as a sequence has of the largest usual tile and
// one row more are always taken.
constexpr int64_t kMaxPartElements = int64_t{1} << 26;
constexpr int64_t kMinLongest = 257;

// Rows of q of the long sequence, where sequences may have different numbers of them: few, so that the reference can
// afford a long one, in two tiles and a bit.
constexpr int64_t kLongDelta = 130;

// Sequences with what the operator takes of each, from none to all and in turn.
class Batch {
 public:
  Batch(const OpSpec& spec, const Signature& signature, int64_t max_seq_len, uint64_t seed)
      : spec_(spec),
        max_seq_len_(max_seq_len),
        random_(seed),
        targets_(find_argument(signature, "num_targets") >= 0),
        contexts_(find_argument(signature, "num_contexts") >= 0),
        // Of an operator that appends new rows to cached ones, those are part of what it generates.
        deltas_(find_argument(signature, Semantic::kMaxRows, kQueryAxis) >= 0 &&
                spec.generated_rows(0, 1, 1).others.empty()),
        same_delta_(find_argument(signature, Semantic::kOffsets, kQueryAxis) < 0),
        // An argument of the launch: only several seeds see several of them.
        delta_(std::array<int64_t, 5>{17, 64, 1, 130, 65}[seed % 5]) {}

  void add(int64_t drawn) {
    const size_t number = lengths.rows.size();
    const int64_t rows = add_rows(drawn, max_seq_len_, lengths);
    if (targets_) lengths.num_targets.push_back(pick_targets(number, rows));
    if (contexts_) lengths.num_contexts.push_back(pick_contexts(number, rows));
    if (deltas_)
      lengths.other_rows[std::string(kQueryAxis)].push_back(same_delta_   ? delta_
                                                            : number == 0 ? kLongDelta
                                                                          : pick_delta(rows));
  }

  // A batch of one sequence, with the rows of q that add() gives the first.
  Lengths alone(int64_t drawn) const {
    Lengths result;
    const int64_t rows = add_rows(drawn, drawn, result);
    result.max_seq_len = rows;
    if (targets_) result.num_targets = {rows / 3};
    if (contexts_) result.num_contexts = {rows / 3};
    if (deltas_) result.other_rows[std::string(kQueryAxis)] = {same_delta_ ? delta_ : kLongDelta};
    return result;
  }

  std::mt19937_64& random() { return random_; }

  Lengths lengths;

 private:
  // A sequence's rows on every axis; returns those of L.
  int64_t add_rows(int64_t drawn, int64_t max_seq_len, Lengths& to) const {
    const GeneratedRows rows = spec_.generated_rows(static_cast<int64_t>(to.rows.size()), drawn, max_seq_len);
    to.rows.push_back(rows.rows);
    for (const auto& [axis, count] : rows.others) to.other_rows[axis].push_back(count);
    return rows.rows;
  }

  int64_t pick_up_to(int64_t max) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(max + 1)); }

  int64_t pick_targets(size_t number, int64_t rows) {
    if (number % 4 == 3) return 0;
    return number % 4 == 0 ? rows : pick_up_to(rows);
  }

  // None, all rows, and so many that contexts and targets together are more than a sequence has, in turn.
  int64_t pick_contexts(size_t number, int64_t rows) {
    if (number % 5 == 3) return 0;
    return number % 5 == 1 ? rows : pick_up_to(rows);
  }

  // None, around tiles, all rows, more than all, and anything between, in turn.
  int64_t pick_delta(int64_t rows) {
    constexpr std::array<int64_t, 9> kFixed = {0, 1, 15, 16, 17, 63, 64, 65, 128};
    const size_t kind = next_delta_++ % (kFixed.size() + 3);
    if (kind < kFixed.size()) return kFixed[kind];
    if (kind == kFixed.size()) return rows;
    return kind == kFixed.size() + 1 ? rows + 5 : pick_up_to(rows);
  }

  const OpSpec& spec_;
  int64_t max_seq_len_;
  std::mt19937_64 random_;
  bool targets_, contexts_, deltas_, same_delta_;
  int64_t delta_;
  size_t next_delta_ = 0;
};

// max_seq_len, or what is left of it where `sequences` parts of that size are too many elements.
int64_t affordable_length(const Signature& signature, int64_t sequences, int64_t max_seq_len) {
  const auto too_many = [&](int64_t length) {
    return std::any_of(signature.begin(), signature.end(), [&](const Argument& argument) {
      return has_parts(argument) && part_elements(argument, length) > kMaxPartElements / sequences;
    });
  };
  while (max_seq_len > kMinLongest && too_many(max_seq_len)) max_seq_len = std::max(max_seq_len * 3 / 4, kMinLongest);
  return max_seq_len;
}

// Elements of the results that a row of a sequence has.
int64_t compared_elements(const Signature& signature) {
  int64_t sum = 0;
  for (const Argument& argument : signature) {
    const bool compared = argument.role == ArgumentRole::kOutput && has_rows(argument);
    if (compared && row_axis(argument) == kSequenceAxis) sum += part_elements(argument, 1);
  }
  return sum;
}

}  // namespace

Lengths adversarial_lengths(const OpSpec& spec, Direction direction, int64_t max_seq_len, uint64_t seed,
                            int64_t max_sequences) {
  const Signature signature = spec.signature(direction);
  std::vector<int64_t> rows = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33};
  for (const int64_t tile : {64, 80, 96, 128, 176, 192, 256}) {
    for (const int64_t near : {tile - 1, tile, tile + 1}) rows.push_back(near);
  }
  rows.push_back(0);
  max_seq_len = affordable_length(signature, static_cast<int64_t>(rows.size()) + 1, max_seq_len);

  Batch batch(spec, signature, max_seq_len, seed);
  const int64_t compared = compared_elements(signature);
  const auto too_large = [&](int64_t longest) {
    return longest * compared > kMaxCompared || spec.work(direction, batch.alone(longest)).flops > kReferenceFlops;
  };
  const bool sequences = std::any_of(signature.begin(), signature.end(), has_sequence_rows);
  const auto too_many = [&](int64_t more) {
    const int64_t total = batch.lengths.total_rows() + more;
    return !sequences &&
           (total * compared > 2 * kMaxCompared || spec.work(direction, batch.alone(total)).flops > kAllReferenceFlops);
  };
  // Candidates for the long sequence, longest first: the first one that the reference can afford.
  for (int64_t longest = max_seq_len; longest >= 1;
       longest = longest > 640 ? std::max<int64_t>(longest / 2 + 3, 640) : 0) {
    if (longest > 640 && too_large(longest)) continue;
    if (!too_many(longest)) batch.add(longest);
    break;
  }
  std::shuffle(rows.begin(), rows.end(), batch.random());
  for (const int64_t n : rows) {
    if (static_cast<int64_t>(batch.lengths.rows.size()) >= max_sequences) break;
    if (n <= max_seq_len && !too_many(n)) batch.add(n);
  }
  batch.lengths.max_seq_len = max_seq_len;
  return std::move(batch.lengths);
}

}  // namespace hstujit
