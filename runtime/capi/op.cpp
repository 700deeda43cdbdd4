// Ops: from JSON to a launch.
#include "runtime/capi/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "compiler/spec/fields_json.h"
#include "compiler/support/json.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"
#include "runtime/capi/boundary.h"
#include "runtime/capi/signature_json.h"
#include "runtime/dispatch/config_settings.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

constexpr int64_t kUsualLength = 1024;

}  // namespace

namespace hstujit::capi {

Result<Direction> read_direction(const hstujit_direction& given) {
  const int value = number_of(given);
  if (value == HSTUJIT_FORWARD) return Direction::kForward;
  if (value == HSTUJIT_BACKWARD) return Direction::kBackward;
  return Status(Code::kInvalidArgument,
                "direction is " + std::to_string(value) + "; it must be HSTUJIT_FORWARD (0) or HSTUJIT_BACKWARD (1)");
}

Result<Backend> read_backend(const hstujit_backend& given) {
  const int value = number_of(given);
  if (value == HSTUJIT_BACKEND_CUDA) return Backend::kCuda;
  if (value == HSTUJIT_BACKEND_HOST) return Backend::kHost;
  return Status(Code::kInvalidArgument, "backend is " + std::to_string(value) +
                                            "; it must be HSTUJIT_BACKEND_CUDA (0) or HSTUJIT_BACKEND_HOST (1)");
}

hstujit_kind kind_of(const Argument& argument) {
  if (argument.kind == ArgumentKind::kTensor) return HSTUJIT_TENSOR;
  return argument.kind == ArgumentKind::kFloat ? HSTUJIT_FLOAT : HSTUJIT_INT;
}

Result<Restriction> read_restriction(const Engine& engine, int deterministic) {
  if (deterministic != 0 && deterministic != 1)
    return Status(Code::kInvalidArgument, fmt::format("deterministic is {}; it must be 0 or 1", deterministic));
  Restriction restriction;
  restriction.deterministic = deterministic == 1 || engine.deterministic();
  return restriction;
}

// An instance of its own needs neither a name nor lengths: those matter to tuning only.
Result<Instance> read_instance(Json json, std::vector<int64_t>* listed) {
  if (!json.is_object()) return value_error("op", json, "a JSON object with \"op\"");
  const bool lists_lengths = json.contains("max_seq_len");
  if (!json.contains("name")) json["name"] = "op";
  const std::string op = text_member(json, "op");
  const std::vector<std::string>& names = entry_field_names(op);
  for (const char* size : {"max_seq_len", "rows"}) {
    if (!json.contains(size) && std::find(names.begin(), names.end(), size) != names.end()) json[size] = kUsualLength;
  }
  Mistakes mistakes;
  // Sentences begin with the operator, as those of a config with the place: "layer_norm.width is 0; ...".
  Instance instance = parse_instance(json, is_operator(op) ? op : "", "", mistakes);
  HSTUJIT_RETURN_IF_ERROR(mistakes.status());
  if (lists_lengths) *listed = instance.max_seq_lens;
  return instance;
}

}  // namespace hstujit::capi

namespace {

Status create(hstujit_context* context, OpOptions options, hstujit_op** out) {
  HSTUJIT_ASSIGN_OR_RETURN(auto op, Op::create(context->engine, std::move(options)));
  *out = new hstujit_op{std::move(op)};
  return {};
}

Status no_such_argument(const Op& op, const char* name) {
  std::vector<std::string_view> names;
  for (const Argument& argument : op.signature()) names.push_back(argument.name);
  return Status(Code::kInvalidArgument,
                fmt::format("{} {} has no argument {}{}; allowed: {}", op.spec().op(), to_string(op.direction()),
                            quote(name), did_you_mean(closest(name, names)), fmt::join(names, ", ")));
}

// hstujit_op_create with all that hstujit_op_options has. Enumerations of a caller may hold any number.
Status create_of_instance(hstujit_context* context, const char* json, const hstujit_direction& direction,
                          const hstujit_backend& backend, int deterministic, hstujit_op** out) {
  HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
  HSTUJIT_REQUIRE(json, "the JSON of one instance");
  HSTUJIT_REQUIRE(out, "where the handle goes");
  OpOptions options;
  HSTUJIT_ASSIGN_OR_RETURN(options.restriction, read_restriction(*context->engine, deterministic));
  HSTUJIT_ASSIGN_OR_RETURN(options.direction, read_direction(direction));
  HSTUJIT_ASSIGN_OR_RETURN(options.backend, read_backend(backend));
  HSTUJIT_ASSIGN_OR_RETURN(Json instance, parse_json_text(json, "op"));
  HSTUJIT_ASSIGN_OR_RETURN(options.instance, read_instance(std::move(instance), &options.listed));
  options.length_mode = context->engine->length_mode();
  return create(context, std::move(options), out);
}

}  // namespace

extern "C" {

hstujit_status hstujit_op_from_config(hstujit_context* context, const hstujit_config* config, const char* name,
                                      hstujit_direction direction, hstujit_backend backend, hstujit_op** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(config, "a handle of hstujit_config_load or hstujit_config_parse");
    HSTUJIT_REQUIRE(name, "the name of an instance in the config");
    HSTUJIT_REQUIRE(out, "where the handle goes");
    HSTUJIT_RETURN_IF_ERROR(refuse_recording(*config));
    OpOptions options;
    HSTUJIT_ASSIGN_OR_RETURN(const Instance* const instance, config->config.find(name));
    options.instance = *instance;
    options.listed = instance->max_seq_lens;
    options.length_mode = length_mode_of(*context->engine, config->config);
    options.restriction = restriction_of(*context->engine, config->config);
    HSTUJIT_ASSIGN_OR_RETURN(options.direction, read_direction(direction));
    HSTUJIT_ASSIGN_OR_RETURN(options.backend, read_backend(backend));
    return create(context, std::move(options), out);
  });
}

hstujit_status hstujit_op_create(hstujit_context* context, const char* json, hstujit_direction direction,
                                 hstujit_backend backend, hstujit_op** out) {
  return guarded([&] { return create_of_instance(context, json, direction, backend, 0, out); });
}

hstujit_status hstujit_op_create_with(hstujit_context* context, const char* json, const hstujit_op_options* options,
                                      hstujit_op** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(options, "a hstujit_op_options");
    HSTUJIT_ASSIGN_OR_RETURN(const auto known, read_struct("hstujit_op_options", options, kFirstOpOptions));
    return create_of_instance(context, json, known.direction, known.backend, known.deterministic, out);
  });
}

hstujit_status hstujit_instance_signature(const char* json, hstujit_direction direction, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(json, "the JSON of one instance");
    HSTUJIT_REQUIRE(out, "where the text goes");
    OpOptions options;
    HSTUJIT_ASSIGN_OR_RETURN(options.direction, read_direction(direction));
    HSTUJIT_ASSIGN_OR_RETURN(Json instance, parse_json_text(json, "op"));
    HSTUJIT_ASSIGN_OR_RETURN(options.instance, read_instance(std::move(instance), &options.listed));
    // Creating an op checks the signature; only preparing and launching need the engine.
    HSTUJIT_ASSIGN_OR_RETURN(const auto op, Op::create(nullptr, std::move(options)));
    return give_text(dump_json(signature_json(op->signature())), out);
  });
}

void hstujit_op_destroy(hstujit_op* op) { delete op; }

hstujit_status hstujit_op_signature(const hstujit_op* op, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(op, "a handle of hstujit_op_create or hstujit_op_from_config");
    HSTUJIT_REQUIRE(out, "where the text goes");
    return give_text(dump_json(signature_json(op->op->signature()), 2), out);
  });
}

int hstujit_op_argument(const hstujit_op* op, const char* name) {
  if (op == nullptr || name == nullptr) return -1;
  return find_argument(op->op->signature(), name);
}

hstujit_status hstujit_op_find_argument(const hstujit_op* op, const char* name, int* position) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(op, "a handle of hstujit_op_create or hstujit_op_from_config");
    HSTUJIT_REQUIRE(name, "the name of an argument");
    HSTUJIT_REQUIRE(position, "where the position goes");
    const Signature& signature = op->op->signature();
    const int found = find_argument(signature, name);
    if (found < 0) return no_such_argument(*op->op, name);
    *position = found;
    return {};
  });
}

int hstujit_op_argument_count(const hstujit_op* op) {
  return op == nullptr ? 0 : static_cast<int>(op->op->signature().size());
}

hstujit_status hstujit_op_argument_at(const hstujit_op* op, int position, hstujit_argument* argument) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(op, "a handle of hstujit_op_create or hstujit_op_from_config");
    HSTUJIT_REQUIRE(argument, "a hstujit_argument");
    const Signature& signature = op->op->signature();
    const size_t size = argument->size;
    HSTUJIT_RETURN_IF_ERROR(check_size("hstujit_argument", size, kFirstArgument));
    if (position < 0 || position >= static_cast<int>(signature.size())) {
      return Status(Code::kInvalidArgument,
                    fmt::format("position is {}; allowed: 0 to {}", position, signature.size() - 1));
    }
    const Argument& described = signature[position];
    hstujit_argument known = HSTUJIT_INIT(hstujit_argument);
    known.size = size;
    known.name = described.name.c_str();
    known.kind = kind_of(described);
    known.output = described.role == ArgumentRole::kOutput ? 1 : 0;
    std::memcpy(argument, &known, std::min(size, sizeof(known)));
    return {};
  });
}

hstujit_status hstujit_prepare(hstujit_op* op, const hstujit_problem* problem) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(op, "a handle of hstujit_op_create or hstujit_op_from_config");
    HSTUJIT_REQUIRE(problem, "a hstujit_problem");
    HSTUJIT_ASSIGN_OR_RETURN(const auto known, read_struct("hstujit_problem", problem, kFirstProblem));
    return op->op->prepare(known.max_seq_len, known.device, known.derivative_follows != 0);
  });
}

hstujit_status hstujit_workspace_size(const hstujit_op* op, const hstujit_value* values, size_t count, size_t* bytes) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(op, "a handle of hstujit_op_create or hstujit_op_from_config");
    HSTUJIT_REQUIRE(bytes, "where the size goes");
    HSTUJIT_ASSIGN_OR_RETURN(*bytes, op->op->workspace_size(values, count));
    return {};
  });
}

hstujit_status hstujit_launch(const hstujit_op* op, const hstujit_value* values, size_t count, void* workspace,
                              size_t workspace_bytes, void* stream) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(op, "a handle of hstujit_op_create or hstujit_op_from_config");
    return op->op->launch(values, count, static_cast<cuda::Stream>(stream), {workspace, workspace_bytes});
  });
}

}  // extern "C"
