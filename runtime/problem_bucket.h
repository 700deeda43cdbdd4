// The bucket of a problem: what tuning records and look-ups are keyed by besides the operator, and what a kernel is
// prepared for. Whole configs, ops, recordings and tuning all ask here, so that they mean the same key.
//
// An operator whose launches say a max_seq_len has the buckets of the length mode. One without sequences has a single
// bucket: a launch says no length, so nothing could choose between several.
#pragma once

#include "compiler/spec/config.h"

namespace hstujit {

inline constexpr int64_t kSingleBucket = 1;

// Whether launches say a max_seq_len.
bool has_sequences(const Signature& signature);

// `length` is a max_seq_len; for an operator without sequences it may be anything.
int64_t problem_bucket(const Signature& signature, LengthMode mode, int64_t length, const std::vector<int64_t>& listed);

// The length of the inputs that a bucket is timed with: its own, or the instance's most rows for an operator without
// sequences.
int64_t tuning_length(const Signature& signature, const Instance& instance, int64_t bucket);

}  // namespace hstujit
