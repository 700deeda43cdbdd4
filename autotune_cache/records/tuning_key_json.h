// The tuning key as files have it: a JSON object of its fields, those that are false left out.
#pragma once

#include "autotune_cache/records/tuning_record.h"
#include "compiler/support/json.h"

namespace hstujit {

nlohmann::ordered_json to_json(const TuningKey& key);

// Fields that are missing or of another type stay empty: whoever reads a file compares the digest.
TuningKey tuning_key_from(const nlohmann::ordered_json& object);

}  // namespace hstujit
