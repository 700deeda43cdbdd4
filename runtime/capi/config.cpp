// Configs.
#include "compiler/spec/config.h"

#include "compiler/support/files.h"
#include "compiler/support/read_limits.h"
#include "operations/api/operations_api.h"
#include "runtime/capi/operations_call.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace hstujit::capi {

Result<ConfigHandle> config_in(const OperationsLibrary& library, const hstujit_config::Source& source) {
  HSTUJIT_ASSIGN_OR_RETURN(auto* const destroy, library.function<decltype(hstujit_operations_config_destroy)>(
                                                    "hstujit_operations_config_destroy"));
  hstujit_config* config = nullptr;
  HSTUJIT_RETURN_IF_ERROR(library.call<decltype(hstujit_operations_config_create)>(
      "hstujit_operations_config_create", source.text.c_str(), source.origin.c_str(), source.folder.c_str(),
      source.is_recording ? 1 : 0, &config));
  return ConfigHandle(config, destroy);
}

}  // namespace hstujit::capi

extern "C" {

hstujit_status hstujit_config_schema(hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the text goes");
    HSTUJIT_ASSIGN_OR_RETURN(const OperationsLibrary library, OperationsLibrary::open(Environment::of_process()));
    return library.call<decltype(hstujit_operations_config_schema)>("hstujit_operations_config_schema", out);
  });
}

hstujit_status hstujit_config_load(const char* path, hstujit_config** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(path, "the path of a JSON config");
    HSTUJIT_REQUIRE(out, "where the handle goes");
    const std::filesystem::path file(path);
    hstujit_config::Source source{{}, path, file.parent_path().string()};
    HSTUJIT_ASSIGN_OR_RETURN(source.text, read_config_file(file));
    HSTUJIT_ASSIGN_OR_RETURN(Config config, parse_config(source.text, source.origin, source.folder));
    *out = new hstujit_config{std::move(source), std::move(config), {}};
    return {};
  });
}

hstujit_status hstujit_config_parse(const char* json, const char* origin, hstujit_config** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(json, "the text of a JSON config");
    HSTUJIT_REQUIRE(out, "where the handle goes");
    hstujit_config::Source source{json, origin == nullptr || *origin == 0 ? "config" : origin, ""};
    HSTUJIT_ASSIGN_OR_RETURN(Config config, parse_config(source.text, source.origin, source.folder));
    *out = new hstujit_config{std::move(source), std::move(config), {}};
    return {};
  });
}

hstujit_status hstujit_config_load_recording(const char* path, hstujit_config** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(path, "the path of a file that HSTUJIT_RECORD wrote");
    HSTUJIT_REQUIRE(out, "where the handle goes");
    hstujit_config::Source source{{}, path, "", true};
    HSTUJIT_ASSIGN_OR_RETURN(source.text, read_file(path, kMaxRecordingBytes));
    HSTUJIT_ASSIGN_OR_RETURN(const OperationsLibrary library, OperationsLibrary::open(Environment::of_process()));
    HSTUJIT_RETURN_IF_ERROR(config_in(library, source).status());  // what is wrong with it is said at once
    *out = new hstujit_config{std::move(source), {}, {}};
    return {};
  });
}

void hstujit_config_destroy(hstujit_config* config) { delete config; }

hstujit_status hstujit_config_describe(const hstujit_config* config, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(config, "a handle of hstujit_config_load or hstujit_config_parse");
    HSTUJIT_REQUIRE(out, "where the text goes");
    HSTUJIT_ASSIGN_OR_RETURN(const OperationsLibrary library, OperationsLibrary::open(Environment::of_process()));
    HSTUJIT_ASSIGN_OR_RETURN(const ConfigHandle there, config_in(library, config->source));
    return library.call<decltype(hstujit_operations_config_describe)>(
        "hstujit_operations_config_describe", static_cast<const hstujit_config*>(there.get()), out);
  });
}

}  // extern "C"
