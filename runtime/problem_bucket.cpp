#include "runtime/problem_bucket.h"

#include <algorithm>

namespace hstujit {

bool has_sequences(const Signature& signature) { return find_argument(signature, "max_seq_len") >= 0; }

int64_t problem_bucket(const Signature& signature, LengthMode mode, int64_t length,
                       const std::vector<int64_t>& listed) {
  return has_sequences(signature) ? length_bucket(mode, length, listed) : kSingleBucket;
}

int64_t tuning_length(const Signature& signature, const Instance& instance, int64_t bucket) {
  if (has_sequences(signature) || instance.max_seq_lens.empty()) return bucket;
  return *std::max_element(instance.max_seq_lens.begin(), instance.max_seq_lens.end());
}

}  // namespace hstujit
