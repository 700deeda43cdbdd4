// Tuning one key on a GPU of this process.
#pragma once

#include "operations/tuning/tuner/tuner.h"
#include "runtime/dispatch/miss_tuner.h"

namespace hstujit {

Result<TuneReport> tune_on_device(Engine& engine, const TuningRequest& request, const TunerOptions& options);

// The tuner of engines whose library or program contains it.
std::shared_ptr<const MissTuner> miss_tuner_of_this_library();

}  // namespace hstujit
