// The findings of a tuning record as its file has them.
#pragma once

#include "autotune_cache/records/tuning_record.h"
#include "compiler/support/json.h"

namespace hstujit {

// kInvalidArgument when a config is no JSON object, a time is no positive number, or a rejection has no reason.
Result<Json> to_json(const TimedCandidate& candidate);
Result<Json> to_json(const TuningRejection& candidate);

}  // namespace hstujit
