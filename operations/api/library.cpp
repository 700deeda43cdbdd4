// The library itself, its contexts and its configs.
#include "compiler/generator/generator_digest.h"
#include "compiler/spec/batch.h"
#include "compiler/spec/fields_json.h"
#include "compiler/spec/schema.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/json.h"
#include "operations/api/operations_api.h"
#include "operations/configs/operation.h"
#include "operations/tuning/tuner/tune_key.h"
#include "runtime/capi/boundary.h"
#include "runtime/capi/context_options.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

Environment environment_of(const char* const* variables) {
  std::map<std::string, std::string> values;
  for (; *variables != nullptr; ++variables) {
    const std::string variable = *variables;
    const size_t name = variable.find('=');
    values.emplace(variable.substr(0, name), variable.substr(name + 1));
  }
  return Environment::of_values(std::move(values));
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
  if (instance.num_contexts > 0) json["num_contexts"] = instance.num_contexts;
  if (instance.small_batches) json["small_batches"] = true;
  return json;
}

}  // namespace

extern "C" {

int hstujit_operations_abi(void) { return HSTUJIT_OPERATIONS_ABI; }

const char* hstujit_operations_generator(void) { return generator_digest().data(); }

const char* hstujit_operations_error(void) { return hstujit_last_error(); }

hstujit_status hstujit_operations_context_create(const char* const* environment, const hstujit_context_options* options,
                                                 int diagnose, hstujit_context** out) {
  return guarded([&]() -> Status {
    EngineOptions engine_options;
    HSTUJIT_RETURN_IF_ERROR(read_context_options(options, &engine_options));
    engine_options.environment = environment_of(environment);
    engine_options.tuner = miss_tuner_of_this_library();
    engine_options.has_counterpart = diagnose == 0;
    engine_options.diagnose = diagnose == 1;
    HSTUJIT_ASSIGN_OR_RETURN(EnginePtr engine, Engine::create(std::move(engine_options)));
    *out = new hstujit_context{std::move(engine)};
    return {};
  });
}

void hstujit_operations_context_destroy(hstujit_context* context) { delete context; }

hstujit_status hstujit_operations_config_create(const char* text, const char* origin, const char* folder, int recording,
                                                hstujit_config** out) {
  return guarded([&]() -> Status {
    hstujit_config::Source source{text, origin, folder, recording == 1};
    if (source.is_recording) {
      HSTUJIT_ASSIGN_OR_RETURN(Recording read, parse_recording(source.text, source.origin));
      Config config = read.config;
      *out = new hstujit_config{std::move(source), std::move(config), std::move(read)};
      return {};
    }
    HSTUJIT_ASSIGN_OR_RETURN(Config config, parse_config(source.text, source.origin, source.folder));
    *out = new hstujit_config{std::move(source), std::move(config), {}};
    return {};
  });
}

void hstujit_operations_config_destroy(hstujit_config* config) { delete config; }

hstujit_status hstujit_operations_config_describe(const hstujit_config* config, hstujit_text* out) {
  return guarded([&]() -> Status {
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

hstujit_status hstujit_operations_config_schema(hstujit_text* out) {
  return guarded([&]() -> Status { return give_text(dump_json(config_schema(), 2), out); });
}

hstujit_status hstujit_operations_doctor(hstujit_context* context, hstujit_text* report) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(report, "where the text goes");
    return give_report(doctor(*context->engine), report);
  });
}

hstujit_status hstujit_operations_tune_key(hstujit_context* context, const char* request) {
  return guarded([&]() -> Status {
    HSTUJIT_ASSIGN_OR_RETURN(const TuningRequest key, parse_tuning_request(json_or_null(request)));
    return context->engine->tuner()->tune(*context->engine, key);
  });
}

}  // extern "C"
