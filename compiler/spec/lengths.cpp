// The lengths of the sequences in generated inputs.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/spec/batch.h"
#include "compiler/spec/random.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

const std::vector<int64_t>& Lengths::rows_of(std::string_view axis) const {
  static const std::vector<int64_t> none;
  if (axis == kSequenceAxis) return rows;
  const auto found = other_rows.find(axis);
  return found == other_rows.end() ? none : found->second;
}

int64_t Lengths::total_rows(std::string_view axis) const {
  const std::vector<int64_t>& counted = rows_of(axis);
  return std::accumulate(counted.begin(), counted.end(), int64_t{0});
}

int64_t BatchSize::rows_of(std::string_view axis) const {
  if (axis == kSequenceAxis) return rows;
  const auto found = other_rows.find(axis);
  return found == other_rows.end() ? 0 : found->second;
}

std::vector<int64_t> offsets_of(const std::vector<int64_t>& rows) {
  std::vector<int64_t> offsets = {0};
  for (const int64_t n : rows) offsets.push_back(offsets.back() + n);
  return offsets;
}

namespace {

bool takes(const Instance& instance, Semantic semantic, std::string_view axis) {
  return find_argument(instance.spec->signature(Direction::kForward), semantic, axis) >= 0;
}

// Whether the operator says itself how many rows of the axis a sequence has.
bool says_rows_of(const GeneratedRows& rows, std::string_view axis) {
  return std::any_of(rows.others.begin(), rows.others.end(), [&](const auto& other) { return other.first == axis; });
}

// Calls visit(b, its rows) for the leading sequences that have at most `left` rows together.
template <typename Visit>
void for_each_sequence(const Instance& instance, int64_t max_seq_len, int64_t left, const Visit& visit) {
  const UniformLengths& uniform = instance.lengths.uniform;
  const std::vector<int64_t>& list = instance.lengths.list.values();
  const auto longest = static_cast<double>(max_seq_len);
  const auto low = static_cast<int64_t>(std::floor(uniform.low * longest));
  const auto high = static_cast<int64_t>(std::floor(uniform.high * longest));
  const auto choices = static_cast<uint64_t>(high - low + 1);
  const auto rows_of = [&](size_t b) {
    if (!list.empty()) return std::min(list[b], max_seq_len);
    return low + static_cast<int64_t>(random_bits(static_cast<uint64_t>(uniform.seed), 0, b) % choices);
  };
  const auto count = static_cast<size_t>(batch_sequences(instance));
  for (size_t b = 0; b < count && left > 0; ++b) {
    const GeneratedRows rows =
        instance.spec->generated_rows(static_cast<int64_t>(b), std::min(rows_of(b), left), max_seq_len);
    left -= rows.rows;
    visit(b, rows);
  }
}

}  // namespace

int64_t batch_sequences(const Instance& instance) {
  const SharedIntegers& list = instance.lengths.list;
  return list.empty() ? instance.lengths.uniform.batch : static_cast<int64_t>(list.size());
}

BatchSize batch_size(const Instance& instance, int64_t max_seq_len, int64_t max_rows) {
  BatchSize size;
  const std::vector<int64_t>& delta_lens = instance.delta_lens.values();
  int64_t* const queries =
      takes(instance, Semantic::kMaxRows, kQueryAxis) ? &size.other_rows[std::string(kQueryAxis)] : nullptr;
  for_each_sequence(instance, max_seq_len, max_rows, [&](size_t b, const GeneratedRows& rows) {
    ++size.sequences;
    size.rows += rows.rows;
    for (const auto& [axis, count] : rows.others) size.other_rows[axis] += count;
    if (queries != nullptr && !says_rows_of(rows, kQueryAxis)) *queries += delta_lens[b % delta_lens.size()];
  });
  return size;
}

Lengths make_lengths(const Instance& instance, int64_t max_seq_len, int64_t max_rows) {
  Lengths lengths;
  lengths.max_seq_len = max_seq_len;
  const std::vector<int64_t>& delta_lens = instance.delta_lens.values();
  std::vector<int64_t>* const queries =
      takes(instance, Semantic::kMaxRows, kQueryAxis) ? &lengths.other_rows[std::string(kQueryAxis)] : nullptr;
  const bool targets = takes(instance, Semantic::kCounts, kSequenceAxis);
  for_each_sequence(instance, max_seq_len, max_rows, [&](size_t b, const GeneratedRows& rows) {
    lengths.rows.push_back(rows.rows);
    for (const auto& [axis, count] : rows.others) lengths.other_rows[axis].push_back(count);
    if (queries != nullptr && !says_rows_of(rows, kQueryAxis)) queries->push_back(delta_lens[b % delta_lens.size()]);
    if (targets) lengths.num_targets.push_back(std::min(rows.rows, instance.num_targets));
  });
  return lengths;
}

Lengths make_lengths(const Instance& instance, int64_t max_seq_len) {
  return make_lengths(instance, max_seq_len, kAllRows);
}

}  // namespace hstujit
