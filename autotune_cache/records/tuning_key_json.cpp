#include "autotune_cache/records/tuning_key_json.h"

#include "autotune_cache/files/checked_json.h"

namespace hstujit {

using Json = nlohmann::ordered_json;

Json to_json(const TuningKey& key) {
  Json json = {{"op", key.op},     {"spec", key.spec},         {"direction", key.direction}, {"device", key.device},
               {"arch", key.arch}, {"sm_count", key.sm_count}, {"bucket", key.bucket}};
  write_batch_class(json, key.batch_class);
  if (key.deterministic) json["deterministic"] = true;
  return json;
}

TuningKey tuning_key_from(const Json& object) {
  TuningKey key;
  if (!object.is_object()) return key;
  key.op = text_member(object, "op");
  key.spec = text_member(object, "spec");
  key.direction = text_member(object, "direction");
  key.device = text_member(object, "device");
  key.arch = text_member(object, "arch");
  key.sm_count = integer_member(object, "sm_count", 0);
  key.bucket = integer_member(object, "bucket", 0);
  key.batch_class = batch_class_from(object);
  const auto deterministic = object.find("deterministic");
  key.deterministic = deterministic != object.end() && *deterministic == true;
  return key;
}

}  // namespace hstujit
