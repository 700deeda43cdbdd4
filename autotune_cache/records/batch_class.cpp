#include "autotune_cache/records/batch_class.h"

namespace hstujit {

using Json = nlohmann::ordered_json;

std::string_view key_field(BatchClass batch_class) {
  switch (batch_class) {
    case BatchClass::kAny:
      return "";
    case BatchClass::kSmall:
      return "small_batch";
    case BatchClass::kShortSequences:
      return "short_sequences";
  }
  return "";
}

void write_batch_class(Json& object, BatchClass batch_class) {
  if (const std::string_view field = key_field(batch_class); !field.empty()) object[std::string(field)] = true;
}

BatchClass batch_class_from(const Json& object) {
  for (const BatchClass batch_class : {BatchClass::kSmall, BatchClass::kShortSequences}) {
    const auto member = object.find(std::string(key_field(batch_class)));
    if (member != object.end() && *member == true) return batch_class;
  }
  return BatchClass::kAny;
}

}  // namespace hstujit
