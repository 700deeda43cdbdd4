// What the library can do, as JSON: operators, config schema, environment, configs.

#include "compiler/spec/batch.h"
#include "compiler/spec/fields_json.h"
#include "compiler/spec/schema.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/json.h"
#include "runtime/capi/boundary.h"
#include "runtime/capi/call_json.h"
#include "runtime/capi/signature_json.h"
#include "runtime/operations/operation.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

std::string_view kind_name(EnvKind kind) {
  switch (kind) {
    case EnvKind::kText:
      return "text";
    case EnvKind::kPath:
      return "path";
    case EnvKind::kFlag:
      return "flag";
    case EnvKind::kNumber:
      return "number";
    case EnvKind::kSize:
      return "size";
    case EnvKind::kChoice:
      return "choice";
    case EnvKind::kChoices:
      return "choices";
    case EnvKind::kPaths:
      return "paths";
  }
  return "";
}

// `to_count`: how many sequences may yet be counted.
Json instance_json(const Instance& instance, int64_t& to_count) {
  Json directions = Json::array();
  for (const Direction direction : instance.directions) directions.push_back(to_string(direction));
  Json rows = Json::array();
  const int64_t batch = batch_sequences(instance);
  for (const int64_t length : instance.max_seq_lens) {
    const bool counted = batch <= to_count;
    rows.push_back(counted ? Json(batch_size(instance, length).rows) : Json());
    if (counted) to_count -= batch;
  }
  Json json = {{"name", instance.name},
               {"op", instance.spec->op()},
               {"directions", std::move(directions)},
               {"spec", instance.spec->to_json()},
               {"max_seq_len", instance.max_seq_lens.values()},
               {"batch", batch},
               {"rows", std::move(rows)},
               {"num_targets", instance.num_targets},
               {"alpha", instance.alpha}};
  if (find_argument(instance.spec->signature(Direction::kForward), Semantic::kMaxRows, kQueryAxis) >= 0) {
    json["delta_len"] = instance.delta_lens.values();
  }
  if (instance.small_batches) json["small_batches"] = true;
  return json;
}

}  // namespace

extern "C" {

hstujit_status hstujit_operators(hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the text goes");
    Json list = Json::array();
    for (const std::string_view op : operator_names()) {
      HSTUJIT_ASSIGN_OR_RETURN(const OperatorCall call, operator_call(op));
      list.push_back({{"op", op}, {"parameters", operator_schema(op)}, {"calls", calls_json(call)}});
    }
    return give_text(dump_json(list), out);
  });
}

hstujit_status hstujit_config_schema(hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the text goes");
    return give_text(dump_json(config_schema(), 2), out);
  });
}

hstujit_status hstujit_environment(hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the text goes");
    Json list = Json::array();
    for (const EnvVariable& variable : environment_variables()) {
      list.push_back({{"name", variable.name},
                      {"kind", kind_name(variable.kind)},
                      {"default", variable.fallback},
                      {"allowed", variable.allowed},
                      {"doc", variable.doc}});
    }
    return give_text(dump_json(list, 2), out);
  });
}

hstujit_status hstujit_config_load(const char* path, hstujit_config** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(path, "the path of a JSON config");
    HSTUJIT_REQUIRE(out, "where the handle goes");
    HSTUJIT_ASSIGN_OR_RETURN(Config config, load_config(path));
    *out = new hstujit_config{std::move(config), {}};
    return {};
  });
}

hstujit_status hstujit_config_parse(const char* json, const char* origin, hstujit_config** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(json, "the text of a JSON config");
    HSTUJIT_REQUIRE(out, "where the handle goes");
    HSTUJIT_ASSIGN_OR_RETURN(Config config,
                             parse_config(json, origin == nullptr || *origin == 0 ? "config" : origin, ""));
    *out = new hstujit_config{std::move(config), {}};
    return {};
  });
}

hstujit_status hstujit_config_load_recording(const char* path, hstujit_config** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(path, "the path of a file that HSTUJIT_RECORD wrote");
    HSTUJIT_REQUIRE(out, "where the handle goes");
    HSTUJIT_ASSIGN_OR_RETURN(Recording recording, load_recording(path));
    Config config = recording.config;
    *out = new hstujit_config{std::move(config), std::move(recording)};
    return {};
  });
}

void hstujit_config_destroy(hstujit_config* config) { delete config; }

hstujit_status hstujit_config_describe(const hstujit_config* config, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(config, "a handle of hstujit_config_load or hstujit_config_parse");
    HSTUJIT_REQUIRE(out, "where the text goes");
    constexpr int64_t kCounted = int64_t{1} << 24;  // a second
    int64_t to_count = kCounted;
    const Config& value = config->config;
    Json instances = Json::array();
    for (const Instance& instance : value.instances) instances.push_back(instance_json(instance, to_count));
    const Json json = {{"device", value.device ? Json(to_json(*value.device)) : Json(nullptr)},
                       {"tuning", fields_to_json(value.tuning)},
                       {"instances", std::move(instances)}};
    return give_text(dump_json(json, 2), out);
  });
}

}  // extern "C"
