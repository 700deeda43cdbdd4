#include "compiler/driver/request.h"

#include <fmt/format.h>

#include "compiler/support/json.h"

namespace hstujit {

namespace {

Status invalid(std::string message) { return Status(Code::kInvalidConfig, std::move(message)); }

Result<std::string> text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return invalid(fmt::format("request: {} must be a string", name));
  return found->get<std::string>();
}

Result<Json> object_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return invalid(fmt::format("request: {} must be an object", name));
  return *found;
}

Status parse_options(const Json& json, Request& request) {
  const auto options = json.find("options");
  if (options == json.end()) return {};
  if (!options->is_object()) return invalid("request: options must be an object");
  for (const auto& [name, value] : options->items()) {
    if (name == "lineinfo" && value.is_boolean()) {
      request.lineinfo = value.get<bool>();
    } else if (name == "nvrtc" && value.is_string()) {
      request.nvrtc = value.get<std::string>();
    } else {
      return invalid(fmt::format("request: options.{} is {}; allowed are lineinfo (boolean) and nvrtc (a path)", name,
                                 brief_json(value)));
    }
  }
  return {};
}

}  // namespace

Result<Request> parse_request(std::string_view text) {
  const Json json = json_or_null(text, {.depth = kMaxReportDepth});
  if (!json.is_object()) return invalid("request: not a JSON object");
  Request request;
  HSTUJIT_ASSIGN_OR_RETURN(const std::string command, text_of(json, "command"));
  if (command == "nvrtc") {
    request.command = CompilerCommand::kNvrtc;
    HSTUJIT_RETURN_IF_ERROR(parse_options(json, request));
    return request;
  }
  if (command != "compile" && command != "emit") {
    return invalid(fmt::format("request: command is \"{}\"; allowed are compile, emit and nvrtc", command));
  }
  request.command = command == "emit" ? CompilerCommand::kEmit : CompilerCommand::kCompile;

  HSTUJIT_ASSIGN_OR_RETURN(const std::string direction, text_of(json, "direction"));
  const std::optional<Direction> known_direction = parse_direction(direction);
  if (!known_direction) {
    return invalid(fmt::format("request: direction is \"{}\"; allowed are forward and backward", direction));
  }
  request.direction = *known_direction;

  HSTUJIT_ASSIGN_OR_RETURN(const Json spec, object_of(json, "spec"));
  HSTUJIT_ASSIGN_OR_RETURN(request.spec, parse_op_spec(spec, "spec"));
  HSTUJIT_ASSIGN_OR_RETURN(const Json config, object_of(json, "config"));
  HSTUJIT_ASSIGN_OR_RETURN(request.config, parse_kernel_config(config));
  HSTUJIT_ASSIGN_OR_RETURN(const Json device, object_of(json, "device"));
  HSTUJIT_ASSIGN_OR_RETURN(request.device, parse_device_spec(device));
  HSTUJIT_RETURN_IF_ERROR(parse_options(json, request));
  return request;
}

}  // namespace hstujit
