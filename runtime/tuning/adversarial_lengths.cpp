#include "runtime/tuning/adversarial_lengths.h"

#include <algorithm>
#include <random>

namespace hstujit {

namespace {

// Multiply-adds of the float64 reference that one validation may cost: a second or two on two cores.
constexpr double kReferenceFlops = 2e9;

void add_sequence(Lengths& lengths, int64_t rows, bool targets, std::mt19937_64& random) {
  lengths.rows.push_back(rows);
  if (!targets) return;
  // None, all, and anything between, in turn.
  switch (lengths.rows.size() % 4) {
    case 0:
      lengths.num_targets.push_back(0);
      break;
    case 1:
      lengths.num_targets.push_back(rows);
      break;
    default:
      lengths.num_targets.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows + 1)));
  }
}

}  // namespace

Lengths adversarial_lengths(const OpSpec& spec, Direction direction, int64_t max_seq_len, uint64_t seed) {
  const Signature signature = spec.signature(direction);
  const bool targets = find_argument(signature, "num_targets") >= 0;
  std::mt19937_64 random(seed);

  // Candidates for the long sequence, longest first: the first one that the reference can afford.
  Lengths lengths;
  for (int64_t longest = max_seq_len; longest >= 1;
       longest = longest > 640 ? std::max<int64_t>(longest / 2 + 3, 640) : 0) {
    Lengths alone;
    alone.rows = {longest};
    alone.max_seq_len = longest;
    if (targets) alone.num_targets = {longest / 3};
    if (longest > 640 && spec.work(direction, alone).flops > kReferenceFlops) continue;
    add_sequence(lengths, longest, targets, random);
    break;
  }
  std::vector<int64_t> rows = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33};
  for (const int64_t tile : {64, 80, 96, 128, 176, 192, 256}) {
    for (const int64_t near : {tile - 1, tile, tile + 1}) rows.push_back(near);
  }
  rows.push_back(0);
  std::shuffle(rows.begin(), rows.end(), random);
  for (const int64_t n : rows) {
    if (n <= max_seq_len) add_sequence(lengths, n, targets, random);
  }
  lengths.max_seq_len = max_seq_len;
  return lengths;
}

}  // namespace hstujit
