// The batches that a tuning key is of: a kernel that is fastest for one class need not be so for another. Which class a
// launch is of follows from sizes that the host knows.
#pragma once

#include <cstddef>
#include <string_view>

#include "compiler/support/json.h"

namespace hstujit {

enum class BatchClass {
  kAny,             // all that are in no other class, or of operators that make no difference
  kSmall,           // of so few tiles that they leave a part of the device idle (compiler/spec/small_batch.h)
  kShortSequences,  // of sequences that are short on average (compiler/spec/short_sequences.h)
};
inline constexpr size_t kBatchClasses = 3;

// The field of keys and reports that is true for the class, and left out for others: "small_batch" "short_sequences";
// empty for kAny.
std::string_view key_field(BatchClass batch_class);

void write_batch_class(nlohmann::ordered_json& object, BatchClass batch_class);
BatchClass batch_class_from(const nlohmann::ordered_json& object);

}  // namespace hstujit
