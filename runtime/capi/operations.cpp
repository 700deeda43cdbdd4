// Work on whole configs and on the cache, which libhstujit_operations.so does.
#include "operations/api/operations_api.h"
#include "runtime/capi/callbacks.h"
#include "runtime/capi/context_options.h"
#include "runtime/capi/operations_call.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

// The caller's progress callback, which is left out after hstujit_callbacks_stop.
struct Progress {
  hstujit_progress_callback report;
  void* user;

  static void pass_on(void* progress, size_t done, size_t total, const char* what) {
    const Callback callback;
    if (!callback.is_open()) return;
    const Progress& self = *static_cast<const Progress*>(progress);
    self.report(self.user, done, total, what);  // what it throws, the library catches
  }
};

hstujit_status operate(const std::string& name, hstujit_context* context, const hstujit_config* config,
                       const hstujit_run_options* options, hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(config, "a handle of hstujit_config_load or hstujit_config_parse");
    HSTUJIT_REQUIRE(report, "where the text goes");
    auto given = HSTUJIT_INIT(hstujit_run_options);
    if (options != nullptr) {
      HSTUJIT_ASSIGN_OR_RETURN(given, read_struct("hstujit_run_options", options, kFirstRunOptions));
      given.size = sizeof(given);
    }
    Progress progress{given.progress, given.progress_user};
    if (given.progress != nullptr) {
      given.progress = Progress::pass_on;
      given.progress_user = &progress;
    }
    HSTUJIT_ASSIGN_OR_RETURN(const OperationsPtr operations, context->engine->operations());
    HSTUJIT_ASSIGN_OR_RETURN(const ConfigHandle there, config_in(operations->library(), config->source));
    return operations->call<decltype(hstujit_operations_run)>(name, static_cast<const hstujit_config*>(there.get()),
                                                              static_cast<const hstujit_run_options*>(&given), report);
  });
}

}  // namespace

extern "C" {

hstujit_status hstujit_prewarm(hstujit_context* context, const hstujit_config* config,
                               const hstujit_run_options* options, hstujit_text* report) {
  return operate("hstujit_operations_prewarm", context, config, options, report);
}

hstujit_status hstujit_tune(hstujit_context* context, const hstujit_config* config, const hstujit_run_options* options,
                            hstujit_text* report) {
  return operate("hstujit_operations_tune", context, config, options, report);
}

hstujit_status hstujit_run(hstujit_context* context, const hstujit_config* config, const hstujit_run_options* options,
                           hstujit_text* report) {
  return operate("hstujit_operations_run", context, config, options, report);
}

hstujit_status hstujit_bench(hstujit_context* context, const hstujit_config* config, const hstujit_run_options* options,
                             hstujit_text* report) {
  return operate("hstujit_operations_bench", context, config, options, report);
}

hstujit_status hstujit_emit(hstujit_context* context, const hstujit_config* config, const hstujit_run_options* options,
                            hstujit_text* report) {
  return operate("hstujit_operations_emit", context, config, options, report);
}

hstujit_status hstujit_freeze(hstujit_context* context, const hstujit_config* config,
                              const hstujit_run_options* options, hstujit_text* report) {
  return operate("hstujit_operations_freeze", context, config, options, report);
}

hstujit_status hstujit_explain(hstujit_context* context, const hstujit_config* config,
                               const hstujit_run_options* options, hstujit_text* report) {
  return operate("hstujit_operations_explain", context, config, options, report);
}

hstujit_status hstujit_check(hstujit_context* context, const hstujit_config* config, const hstujit_run_options* options,
                             hstujit_text* report) {
  return operate("hstujit_operations_check", context, config, options, report);
}

hstujit_status hstujit_cache_list(hstujit_context* context, hstujit_text* report) {
  return forward<decltype(hstujit_operations_cache_list)>("hstujit_operations_cache_list", context, report);
}

hstujit_status hstujit_cache_verify(hstujit_context* context, hstujit_text* report) {
  return forward<decltype(hstujit_operations_cache_verify)>("hstujit_operations_cache_verify", context, report);
}

hstujit_status hstujit_cache_prune(hstujit_context* context, uint64_t max_bytes, hstujit_text* report) {
  return forward<decltype(hstujit_operations_cache_prune)>("hstujit_operations_cache_prune", context, max_bytes,
                                                           report);
}

hstujit_status hstujit_cache_prune_nvrtc(hstujit_context* context, const char* version, hstujit_text* report) {
  return forward<decltype(hstujit_operations_cache_prune_nvrtc)>("hstujit_operations_cache_prune_nvrtc", context,
                                                                 version, report);
}

hstujit_status hstujit_cache_path(hstujit_context* context, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(out, "where the text goes");
    const std::string& user = context->engine->kernels().store().directories().user;
    if (user.empty()) {
      return Status(
          Code::kNotFound,
          "there is no cache directory: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset; cache_dir names one");
    }
    return give_text(user, out);
  });
}

hstujit_status hstujit_cache_export(hstujit_context* context, const char* path,
                                    const hstujit_cache_export_options* options, hstujit_text* report) {
  return forward<decltype(hstujit_operations_cache_export)>("hstujit_operations_cache_export", context, path, options,
                                                            report);
}

hstujit_status hstujit_cache_import(hstujit_context* context, const char* path, hstujit_text* report) {
  return forward<decltype(hstujit_operations_cache_import)>("hstujit_operations_cache_import", context, path, report);
}

hstujit_status hstujit_doctor(hstujit_context* context, hstujit_text* out) {
  return forward<decltype(hstujit_operations_doctor)>("hstujit_operations_doctor", context, out);
}

hstujit_status hstujit_diagnose(const hstujit_context_options* options, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the text goes");
    EngineOptions engine_options;
    if (options != nullptr) HSTUJIT_RETURN_IF_ERROR(read_context_options(options, &engine_options));
    engine_options.diagnose = true;
    HSTUJIT_ASSIGN_OR_RETURN(const OperationsPtr operations,
                             OperationsContext::create(operations_settings(engine_options)));
    return operations->call<decltype(hstujit_operations_doctor)>("hstujit_operations_doctor", out);
  });
}

}  // extern "C"
