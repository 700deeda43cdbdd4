// Calls of libhstujit_operations.so for functions of the C API.
#pragma once

#include <memory>
#include <string>

#include "runtime/capi/boundary.h"
#include "runtime/engine/operations_library.h"

namespace hstujit::capi {

// Passes the call on to the library's function `name`, whose first argument is the context's counterpart there.
template <typename Function, typename... Arguments>
hstujit_status forward(const std::string& name, hstujit_context* context, Arguments... arguments) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_ASSIGN_OR_RETURN(const OperationsPtr operations, context->engine->operations());
    return operations->call<Function>(name, arguments...);
  });
}

// A config's counterpart in the library, with the function that destroys it.
using ConfigHandle = std::unique_ptr<hstujit_config, void (*)(hstujit_config*)>;
// kInvalidConfig with what is wrong of the text.
Result<ConfigHandle> config_in(const OperationsLibrary& library, const hstujit_config::Source& source);

}  // namespace hstujit::capi
