#include "runtime/dispatch/problem_bucket.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/spec/short_sequences.h"
#include "compiler/spec/small_batch.h"
#include "runtime/dispatch/batch_classes.h"

namespace hstujit {

std::string to_string(const ProblemBucket& bucket) {
  switch (bucket.batch_class) {
    case BatchClass::kAny:
      break;
    case BatchClass::kSmall:
      return fmt::format("{} small batches", bucket.rows);
    case BatchClass::kShortSequences:
      return fmt::format("{} short sequences", bucket.rows);
  }
  return fmt::format("{}", bucket.rows);
}

int64_t problem_bucket(const Signature& signature, LengthMode mode, int64_t length,
                       const std::vector<int64_t>& listed) {
  return has_max_seq_len(signature) ? length_bucket(mode, length, listed) : kSingleBucket;
}

int64_t tuning_length(const Signature& signature, const Instance& instance, int64_t bucket) {
  if (has_max_seq_len(signature) || instance.max_seq_lens.empty()) return bucket;
  return *std::max_element(instance.max_seq_lens.begin(), instance.max_seq_lens.end());
}

Lengths tuning_lengths(const Instance& instance, Direction direction, const ProblemBucket& bucket,
                       const DeviceSpec& device) {
  const int64_t length = tuning_length(instance.spec->signature(direction), instance, bucket.rows);
  switch (bucket.batch_class) {
    case BatchClass::kAny:
      break;
    case BatchClass::kSmall:
      return make_small_lengths(instance, length, batch_classes(instance, direction, bucket.rows, device).max_small);
    case BatchClass::kShortSequences:
      return make_short_lengths(instance, length);
  }
  return make_lengths(instance, length);
}

}  // namespace hstujit
