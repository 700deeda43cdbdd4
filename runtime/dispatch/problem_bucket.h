// The bucket of a problem: what tuning records and look-ups are keyed by besides the operator, and what a kernel is
// prepared for. Whole configs, ops, recordings and tuning all ask here, so that they mean the same key.
//
// An operator whose launches say a max_seq_len has the buckets of the length mode. Another one has a single bucket: a
// launch says no length, so nothing could choose between several. Where the batch decides which kernel is fastest, a
// bucket has one for each class of batches (batch_classes.h).
#pragma once

#include <compare>
#include <string>

#include "autotune_cache/records/batch_class.h"
#include "compiler/spec/config.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

inline constexpr int64_t kSingleBucket = 1;

// Key of a look-up: the quantised max_seq_len and the class of the batch. A length alone is the bucket of all batches
// that are in no class of their own.
struct ProblemBucket {
  ProblemBucket(int64_t rows_, BatchClass batch_class_ = BatchClass::kAny)  // NOLINT(google-explicit-constructor)
      : rows(rows_), batch_class(batch_class_) {}

  int64_t rows;
  BatchClass batch_class;

  auto operator<=>(const ProblemBucket&) const = default;
};
std::string to_string(const ProblemBucket& bucket);  // "1024", "1024 small batches", "1024 short sequences"

// `length` is a max_seq_len; for an operator whose launches say none it may be anything.
int64_t problem_bucket(const Signature& signature, LengthMode mode, int64_t length, const std::vector<int64_t>& listed);

// The length of the inputs that a bucket is timed with: its own, or the instance's longest for an operator of a single
// bucket.
int64_t tuning_length(const Signature& signature, const Instance& instance, int64_t bucket);

// The batch that a bucket is timed with.
Lengths tuning_lengths(const Instance& instance, Direction direction, const ProblemBucket& bucket,
                       const DeviceSpec& device);

}  // namespace hstujit
