// The options of a context, from the caller's struct.
#pragma once

#include "hstujit/hstujit.h"
#include "runtime/engine/engine.h"

namespace hstujit::capi {

// Fills in what the caller gave, which is not null. kInvalidArgument with what is wrong.
Status read_context_options(const hstujit_context_options* from, EngineOptions* options);

}  // namespace hstujit::capi
