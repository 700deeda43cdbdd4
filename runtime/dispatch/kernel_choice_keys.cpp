// Keys by which a choice is looked up, and the size that the cost model sees.
#include <numeric>

#include "compiler/spec/short_sequences.h"
#include "runtime/dispatch/kernel_choice.h"

namespace hstujit {

TuningKey tuning_key(const OpSpec& spec, Direction direction, const DeviceSpec& device, const ProblemBucket& bucket,
                     const Restriction& restriction) {
  TuningKey key;
  key.op = spec.op();
  key.spec = key_text(spec);
  key.direction = to_string(direction);
  key.device = device.name;
  key.arch = device.arch;
  key.sm_count = device.sm_count;
  key.bucket = bucket.rows;
  key.batch_class = bucket.batch_class;
  key.deterministic = restriction.deterministic;
  return key;
}

std::vector<TuningKey> serving_keys(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                    const ProblemBucket& bucket, const Restriction& restriction) {
  std::vector<TuningKey> keys = {tuning_key(spec, direction, device, bucket, restriction)};
  if (restriction.deterministic) keys.push_back(tuning_key(spec, direction, device, bucket));
  return keys;
}

ProblemSize heuristic_size(const ProblemBucket& bucket) {
  ProblemSize size;
  size.max_seq_len = bucket.rows;
  switch (bucket.batch_class) {
    case BatchClass::kAny:
      // All sequences of such a bucket are short: batches of them have many, as those of a class of their own, and many
      // that are much shorter than the bucket.
      if (bucket.rows > kSingleBucket && bucket.rows <= kShortMeanRows) {
        size.batch = kShortBatch;
        size.mean_fill = 0.3;
      }
      break;
    case BatchClass::kSmall:
      size.small_batch = true;
      size.batch = 1;
      size.mean_fill = 1;
      break;
    case BatchClass::kShortSequences: {
      constexpr size_t kLengths = 24;
      size.batch = kShortBatch;
      size.lengths = typical_short_lengths(bucket.rows, kLengths);
      const auto rows = static_cast<double>(std::accumulate(size.lengths.begin(), size.lengths.end(), int64_t{0}));
      size.mean_fill = rows / static_cast<double>(kLengths) / static_cast<double>(bucket.rows);
      break;
    }
  }
  return size;
}

}  // namespace hstujit
