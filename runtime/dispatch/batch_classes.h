// Which classes of batches a bucket has kernels of their own for, and which one a launch is of.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/spec/config.h"
#include "runtime/dispatch/problem_bucket.h"

namespace hstujit {

// Classes of one bucket. Each has kAny; the bucket's length counts and not that of a launch, so that a bucket has one
// answer.
struct BatchClasses {
  int64_t max_small = 0;         // how many sequences a small batch has at most; 0: none is a class of its own
  bool short_sequences = false;  // whether batches of short sequences are one

  // A small batch of short sequences is a small one.
  BatchClass of(int64_t sequences, int64_t rows) const;
  std::vector<BatchClass> list() const;  // kAny first
};

// Small batches where the instance asks for a kernel of their own; short sequences where a kernel may pack them and the
// bucket is longer than a tile. Of a program, what some step has.
BatchClasses batch_classes(const Instance& instance, Direction direction, int64_t bucket, const DeviceSpec& device);

// The bucket whose record serves a look-up that has none: of short sequences that of the other batches, and the other
// way round. A small batch has nothing in common with others.
std::optional<ProblemBucket> other_batches(const OpSpec& spec, Direction direction, const ProblemBucket& bucket,
                                           const DeviceSpec& device);

// Whether tuning the instance times the bucket: lengths that are given are of short sequences or of others, and say
// nothing of the other class.
bool is_tuned(const Instance& instance, Direction direction, const ProblemBucket& bucket, const DeviceSpec& device);

}  // namespace hstujit
