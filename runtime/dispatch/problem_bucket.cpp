#include "runtime/dispatch/problem_bucket.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/spec/sequence_rows.h"
#include "compiler/spec/small_batch.h"

namespace hstujit {

std::string to_string(const ProblemBucket& bucket) {
  return fmt::format("{}{}", bucket.rows, bucket.small_batch ? " small batches" : "");
}

int64_t problem_bucket(const Signature& signature, LengthMode mode, int64_t length,
                       const std::vector<int64_t>& listed) {
  return has_max_seq_len(signature) ? length_bucket(mode, length, listed) : kSingleBucket;
}

int64_t tuning_length(const Signature& signature, const Instance& instance, int64_t bucket) {
  if (has_max_seq_len(signature) || instance.max_seq_lens.empty()) return bucket;
  return *std::max_element(instance.max_seq_lens.begin(), instance.max_seq_lens.end());
}

int64_t max_small_batch(const Instance& instance, Direction direction, int64_t bucket, const DeviceSpec& device) {
  return instance.small_batches ? max_small_batch(*instance.spec, direction, bucket, device.sm_count) : 0;
}

Lengths tuning_lengths(const Instance& instance, Direction direction, const ProblemBucket& bucket,
                       const DeviceSpec& device) {
  const int64_t length = tuning_length(instance.spec->signature(direction), instance, bucket.rows);
  if (!bucket.small_batch) return make_lengths(instance, length);
  return make_small_lengths(instance, length, max_small_batch(instance, direction, bucket.rows, device));
}

}  // namespace hstujit
