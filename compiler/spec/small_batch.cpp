#include "compiler/spec/small_batch.h"

#include <algorithm>

#include "compiler/spec/batch.h"
#include "compiler/support/integers.h"

namespace hstujit {

int64_t max_small_batch(const OpSpec& spec, Direction direction, int64_t rows, int64_t sm_count) {
  constexpr int64_t kTileRows = 64, kTilesPerSm = 2;
  const int64_t tiles = spec.small_batch_heads(direction) * ceil_div(std::max<int64_t>(rows, 1), kTileRows);
  return tiles == 0 ? 0 : kTilesPerSm * sm_count / tiles;
}

Lengths make_small_lengths(const Instance& instance, int64_t max_seq_len, int64_t max_sequences) {
  if (batch_sequences(instance) <= max_sequences) return make_lengths(instance, max_seq_len);
  Instance longest = instance;
  longest.lengths.list = {max_seq_len};
  return make_lengths(longest, max_seq_len);
}

}  // namespace hstujit
