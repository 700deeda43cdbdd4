#include "autotune_cache/tuning_key_json.h"

#include "autotune_cache/checked_json.h"

namespace hstujit {

namespace {

using Json = nlohmann::ordered_json;

bool is_true(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && *member == true;
}

}  // namespace

Json to_json(const TuningKey& key) {
  Json json = {{"op", key.op},     {"spec", key.spec},         {"direction", key.direction}, {"device", key.device},
               {"arch", key.arch}, {"sm_count", key.sm_count}, {"bucket", key.bucket}};
  if (key.small_batch) json["small_batch"] = true;
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
  key.small_batch = is_true(object, "small_batch");
  key.deterministic = is_true(object, "deterministic");
  return key;
}

}  // namespace hstujit
