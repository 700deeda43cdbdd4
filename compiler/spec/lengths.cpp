// The lengths of the sequences in generated inputs.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/spec/batch.h"
#include "compiler/spec/random.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

const std::vector<int64_t>& Lengths::rows_of(std::string_view axis) const {
  static const auto& none = *new std::vector<int64_t>;
  if (axis == kSequenceAxis) return rows;
  const auto found = other_rows.find(axis);
  return found == other_rows.end() ? none : found->second;
}

const std::vector<int64_t>& Lengths::counts_of(std::string_view argument) const {
  return argument == "num_contexts" ? num_contexts : num_targets;
}

std::vector<int64_t>& Lengths::counts_of(std::string_view argument) {
  return argument == "num_contexts" ? num_contexts : num_targets;
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

// Gives a sequence of an operator that appends new rows, of kQueryAxis, to cached ones, those of another axis, as many
// new rows as the instance says; all of them when the sequence has no more. False for other operators.
bool append_new_rows(GeneratedRows& rows, int64_t drawn, int64_t new_rows, int64_t max_seq_len) {
  const auto is_new = [](const auto& other) { return other.first == kQueryAxis; };
  if (rows.others.size() != 2 || std::none_of(rows.others.begin(), rows.others.end(), is_new)) return false;
  new_rows = std::min(new_rows, max_seq_len);
  const int64_t cached = std::max<int64_t>(0, drawn - new_rows);
  for (auto& other : rows.others) other.second = is_new(other) ? new_rows : cached;
  rows.rows = cached + new_rows;
  return true;
}

// Calls visit(rows) for the leading sequences that have at most `left` rows together.
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
  const bool has_new_rows = takes(instance, Semantic::kMaxRows, kQueryAxis);
  const std::vector<int64_t>& new_rows = instance.delta_lens.values();
  const auto count = static_cast<size_t>(batch_sequences(instance));
  for (size_t b = 0; b < count && left > 0; ++b) {
    const int64_t drawn = std::min(rows_of(b), left), added = new_rows[b % new_rows.size()];
    GeneratedRows rows = instance.spec->generated_rows(static_cast<int64_t>(b), drawn, max_seq_len);
    if (has_new_rows && !append_new_rows(rows, drawn, added, max_seq_len)) {
      std::erase_if(rows.others, [](const auto& other) { return other.first == kQueryAxis; });
      rows.others.emplace_back(kQueryAxis, added);
    }
    left -= rows.rows;
    visit(rows);
  }
}

}  // namespace

int64_t batch_sequences(const Instance& instance) {
  const SharedIntegers& list = instance.lengths.list;
  return list.empty() ? instance.lengths.uniform.batch : static_cast<int64_t>(list.size());
}

bool has_given_lengths(const Instance& instance) {
  return !instance.lengths.list.empty() || instance.lengths.uniform != UniformLengths();
}

BatchSize batch_size(const Instance& instance, int64_t max_seq_len, int64_t max_rows) {
  BatchSize size;
  for_each_sequence(instance, max_seq_len, max_rows, [&](const GeneratedRows& rows) {
    ++size.sequences;
    size.rows += rows.rows;
    for (const auto& [axis, count] : rows.others) size.other_rows[axis] += count;
  });
  return size;
}

Lengths make_lengths(const Instance& instance, int64_t max_seq_len, int64_t max_rows) {
  Lengths lengths;
  lengths.max_seq_len = max_seq_len;
  const Signature signature = instance.spec->signature(Direction::kForward);
  for_each_sequence(instance, max_seq_len, max_rows, [&](const GeneratedRows& rows) {
    lengths.rows.push_back(rows.rows);
    for (const auto& [axis, count] : rows.others) lengths.other_rows[axis].push_back(count);
    for (const Argument& argument : signature) {
      if (argument.semantic != Semantic::kCounts) continue;
      std::vector<int64_t>& counts = lengths.counts_of(argument.name);
      const int64_t most = &counts == &lengths.num_contexts ? instance.num_contexts : instance.num_targets;
      counts.push_back(std::min(rows.rows, most));
    }
  });
  return lengths;
}

Lengths make_lengths(const Instance& instance, int64_t max_seq_len) {
  return make_lengths(instance, max_seq_len, kAllRows);
}

}  // namespace hstujit
