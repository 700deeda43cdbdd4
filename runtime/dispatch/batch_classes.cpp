#include "runtime/dispatch/batch_classes.h"

#include "compiler/plan/packed_sequences.h"
#include "compiler/spec/batch.h"
#include "compiler/spec/short_sequences.h"
#include "compiler/spec/small_batch.h"

namespace hstujit {

namespace {

bool tells_short_sequences(const OpSpec& spec, Direction direction, int64_t bucket, const DeviceSpec& device) {
  return bucket > kShortMeanRows && can_pack_sequences(spec, direction, device);
}

}  // namespace

BatchClass BatchClasses::of(int64_t sequences, int64_t rows) const {
  if (sequences <= max_small && max_small > 0) return BatchClass::kSmall;
  return short_sequences && has_short_sequences(sequences, rows) ? BatchClass::kShortSequences : BatchClass::kAny;
}

std::vector<BatchClass> BatchClasses::list() const {
  std::vector<BatchClass> classes = {BatchClass::kAny};
  if (max_small > 0) classes.push_back(BatchClass::kSmall);
  if (short_sequences) classes.push_back(BatchClass::kShortSequences);
  return classes;
}

BatchClasses batch_classes(const Instance& instance, Direction direction, int64_t bucket, const DeviceSpec& device) {
  const OpSpec& spec = *instance.spec;
  return {instance.small_batches ? max_small_batch(spec, direction, bucket, device.sm_count) : 0,
          tells_short_sequences(spec, direction, bucket, device)};
}

std::optional<ProblemBucket> other_batches(const OpSpec& spec, Direction direction, const ProblemBucket& bucket,
                                           const DeviceSpec& device) {
  if (bucket.batch_class == BatchClass::kShortSequences) return ProblemBucket(bucket.rows);
  if (bucket.batch_class == BatchClass::kSmall || !tells_short_sequences(spec, direction, bucket.rows, device)) {
    return std::nullopt;
  }
  return ProblemBucket(bucket.rows, BatchClass::kShortSequences);
}

bool is_tuned(const Instance& instance, Direction direction, const ProblemBucket& bucket, const DeviceSpec& device) {
  if (!has_given_lengths(instance) || !other_batches(*instance.spec, direction, bucket, device)) return true;
  const BatchSize size =
      batch_size(instance, tuning_length(instance.spec->signature(direction), instance, bucket.rows));
  return has_short_sequences(size.sequences, size.rows) == (bucket.batch_class == BatchClass::kShortSequences);
}

}  // namespace hstujit
