// The bucket of a problem: what tuning records and look-ups are keyed by besides the operator, and what a kernel is
// prepared for. Whole configs, ops, recordings and tuning all ask here, so that they mean the same key.
//
// An operator whose launches say a max_seq_len has the buckets of the length mode. Another one has a single bucket: a
// launch says no length, so nothing could choose between several.
#pragma once

#include <compare>
#include <string>

#include "compiler/spec/config.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

inline constexpr int64_t kSingleBucket = 1;

// What a kernel is looked up by: the quantised max_seq_len and, of instances that ask for it, whether the batch is
// small. A length alone is the bucket of all batches but those.
struct ProblemBucket {
  ProblemBucket(int64_t rows_, bool small_batch_ = false)  // NOLINT(google-explicit-constructor)
      : rows(rows_), small_batch(small_batch_) {}

  int64_t rows;
  bool small_batch;

  auto operator<=>(const ProblemBucket&) const = default;
};
std::string to_string(const ProblemBucket& bucket);  // "1024", "1024 small batches"

// `length` is a max_seq_len; for an operator whose launches say none it may be anything.
int64_t problem_bucket(const Signature& signature, LengthMode mode, int64_t length, const std::vector<int64_t>& listed);

// The length of the inputs that a bucket is timed with: its own, or the instance's longest for an operator of a single
// bucket.
int64_t tuning_length(const Signature& signature, const Instance& instance, int64_t bucket);

// How many sequences a small batch of the instance's bucket has at most on the device; 0 where it has no such batches,
// or did not ask for a kernel of their own. The bucket's length counts, not that of a launch, so that each bucket has
// one answer.
int64_t max_small_batch(const Instance& instance, Direction direction, int64_t bucket, const DeviceSpec& device);

// The batch that a bucket is timed with.
Lengths tuning_lengths(const Instance& instance, Direction direction, const ProblemBucket& bucket,
                       const DeviceSpec& device);

}  // namespace hstujit
