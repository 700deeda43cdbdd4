// The lengths of the sequences in generated inputs.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/spec/config.h"
#include "compiler/spec/random.h"

namespace hstujit {

int64_t Lengths::total_rows() const { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }

int64_t Lengths::total_delta_rows() const { return std::accumulate(delta_rows.begin(), delta_rows.end(), int64_t{0}); }

std::vector<int64_t> offsets_of(const std::vector<int64_t>& rows) {
  std::vector<int64_t> offsets = {0};
  for (const int64_t n : rows) offsets.push_back(offsets.back() + n);
  return offsets;
}

Lengths make_lengths(const Instance& instance, int64_t max_seq_len) {
  Lengths lengths;
  lengths.max_seq_len = max_seq_len;
  const UniformLengths& uniform = instance.lengths.uniform;
  if (!instance.lengths.list.empty()) {
    for (const int64_t length : instance.lengths.list) lengths.rows.push_back(std::min(length, max_seq_len));
  } else {
    const auto longest = static_cast<double>(max_seq_len);
    const auto low = static_cast<int64_t>(std::floor(uniform.low * longest));
    const auto high = static_cast<int64_t>(std::floor(uniform.high * longest));
    const auto choices = static_cast<uint64_t>(high - low + 1);
    for (int64_t b = 0; b < uniform.batch; ++b) {
      const uint64_t bits = random_bits(static_cast<uint64_t>(uniform.seed), 0, static_cast<uint64_t>(b));
      lengths.rows.push_back(low + static_cast<int64_t>(bits % choices));
    }
  }
  const Signature signature = instance.spec->signature(Direction::kForward);
  if (find_argument(signature, "max_delta_len") >= 0) {
    for (size_t b = 0; b < lengths.rows.size(); ++b) {
      lengths.delta_rows.push_back(instance.delta_lens[b % instance.delta_lens.size()]);
    }
  }
  if (find_argument(signature, "num_targets") >= 0) {
    for (const int64_t rows : lengths.rows) lengths.num_targets.push_back(std::min(rows, instance.num_targets));
  }
  return lengths;
}

}  // namespace hstujit
