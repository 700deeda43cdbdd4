// Call interfaces as JSON, from which bindings are generated.
#pragma once

#include "compiler/spec/call/interface.h"

namespace hstujit::capi {

// By direction, as hstujit_operators() describes them.
Json calls_json(const OperatorCall& call);

}  // namespace hstujit::capi
