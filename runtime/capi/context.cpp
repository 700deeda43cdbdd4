// Contexts.
#include <fmt/format.h>

#include <string_view>

#include "compiler/support/json.h"
#include "compiler/support/text.h"
#include "runtime/capi/boundary.h"
#include "runtime/capi/context_options.h"
#include "runtime/capi/kept_ops.h"

using namespace hstujit;
using namespace hstujit::capi;

extern "C" {

hstujit_status hstujit_context_create(const hstujit_context_options* options, hstujit_context** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the handle goes");
    EngineOptions engine_options;
    if (options != nullptr) HSTUJIT_RETURN_IF_ERROR(read_context_options(options, &engine_options));
    HSTUJIT_ASSIGN_OR_RETURN(EnginePtr engine, Engine::create(std::move(engine_options)));
    *out = new hstujit_context{std::move(engine), std::make_shared<KeptOps>()};
    return {};
  });
}

hstujit_status hstujit_stats(hstujit_context* context, const char* format, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a context");
    HSTUJIT_REQUIRE(out, "where the text goes");
    const std::string_view wanted = format == nullptr ? "json" : format;
    Engine& engine = *context->engine;
    const LookUpCounts& look_ups = engine.kernels().counts();
    const size_t modules = engine.modules().size();
    if (wanted == "json") return give_text(dump_json(engine.stats().to_json(look_ups, modules), 2), out);
    if (wanted == "prometheus") return give_text(engine.stats().to_prometheus(look_ups, modules), out);
    return Status(Code::kInvalidArgument,
                  fmt::format("format is {}; it must be \"json\" or \"prometheus\"", quote(wanted)));
  });
}

void hstujit_context_destroy(hstujit_context* context) { delete context; }

}  // extern "C"
