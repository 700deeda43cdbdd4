// Contexts.
#include "runtime/capi/boundary.h"
#include "runtime/capi/context_options.h"

using namespace hstujit;
using namespace hstujit::capi;

extern "C" {

hstujit_status hstujit_context_create(const hstujit_context_options* options, hstujit_context** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the handle goes");
    EngineOptions engine_options;
    if (options != nullptr) HSTUJIT_RETURN_IF_ERROR(read_context_options(options, &engine_options));
    HSTUJIT_ASSIGN_OR_RETURN(EnginePtr engine, Engine::create(std::move(engine_options)));
    *out = new hstujit_context{std::move(engine)};
    return {};
  });
}

void hstujit_context_destroy(hstujit_context* context) { delete context; }

}  // extern "C"
