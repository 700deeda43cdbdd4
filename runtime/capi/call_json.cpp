#include "runtime/capi/call_json.h"

#include <string>
#include <utility>
#include <vector>

#include "runtime/capi/signature_json.h"

namespace hstujit::capi {
namespace {

// Sizes in terms of parameters are text, and others numbers.
Json shape_json(const std::vector<std::string>& shape) {
  Json sizes = Json::array();
  for (const std::string& size : shape) {
    const bool number = size.find_first_not_of("0123456789") == std::string::npos;
    sizes.push_back(number ? Json(std::stoll(size)) : Json(size));
  }
  return sizes;
}

Json entry_json(const CallArgument& entry) {
  Json json = argument_json(entry.argument);
  if (entry.argument.kind == ArgumentKind::kTensor) json["shape"] = shape_json(entry.shape);
  if (entry.optional) json["optional"] = true;
  if (entry.usual) {
    const bool integer = entry.argument.kind == ArgumentKind::kInt;
    json["usual"] = integer ? Json(static_cast<int64_t>(*entry.usual)) : Json(*entry.usual);
  }
  if (!entry.gradient_of.empty()) json["gradient_of"] = entry.gradient_of;
  if (!entry.wanted.empty()) json["wanted"] = entry.wanted;
  return json;
}

Json axis_json(const CallAxis& axis) {
  Json json = {{"argument", axis.argument}, {"axis", axis.axis}};
  if (!axis.unless.empty()) json["unless"] = axis.unless;
  if (!axis.when.empty()) json["when"] = axis.when;
  return json;
}

Json passed_on_json(const CallDeclaration::PassedOn& passed) {
  Json json = {{"argument", passed.input}, {"output", passed.output}};
  if (!passed.factor.empty()) json["factor"] = passed.factor;
  if (!passed.parameter.empty()) {
    json["parameter"] = passed.parameter;
    json["value"] = passed.value == "true" ? Json(true) : Json(passed.value);
  }
  return json;
}

// An object with a member for each parameter, and for each element of `list` what `write` makes of it.
template <typename Source, typename Write>
Json by_parameter(const CallInterface::OfParameters<Source>& sources, Write write) {
  Json json = Json::object();
  for (const auto& [name, source] : sources) json[name] = write(source);
  return json;
}

template <typename List, typename Write>
Json list_json(const List& list, Write write) {
  Json json = Json::array();
  for (const auto& element : list) json.push_back(write(element));
  return json;
}

Json call_json(const CallInterface& call) {
  Json json = Json::object();
  json["arguments"] = list_json(call.arguments, entry_json);
  json["order"] = list_json(call.call_order(), [](const CallArgument* entry) { return Json(entry->argument.name); });
  json["sizes"] =
      by_parameter(call.sizes, [](const std::vector<CallAxis>& axes) { return list_json(axes, axis_json); });
  json["dtypes"] = by_parameter(call.dtypes, [](const std::vector<std::string>& names) { return Json(names); });
  json["presence"] = by_parameter(call.presences, [](const CallInterface::Presence& presence) {
    return Json{{"given", presence.given}, {"left_out", presence.left_out}};
  });
  json["forms"] = by_parameter(call.forms, [](const std::vector<CallForm>& forms) {
    return list_json(
        forms, [](const CallForm& form) { return Json{{"value", form.value}, {"shape", shape_json(form.shape)}}; });
  });
  if (!call.alignment.empty()) json["alignment"] = call.alignment;
  json["keywords"] = call.keywords;
  if (!call.declares.empty()) json["declares"] = call.declares;
  json["rows"] =
      list_json(call.rows, [](const auto& rows) { return Json{{"symbol", rows.first}, {"keyword", rows.second}}; });
  return json;
}

}  // namespace

Json calls_json(const OperatorCall& call) {
  Json calls = Json::object();
  calls["forward"] = call_json(*call.forward);
  if (!call.backward) return calls;
  Json& backward = calls["backward"] = call_json(*call.backward);
  backward["passed_on"] = list_json(call.declaration.passed_on(), passed_on_json);
  Json& forward_only = calls["forward"]["forward_only"] = Json::array();
  for (const auto& [name, parameter] : call.declaration.parameters()) {
    if (parameter.forward_only) forward_only.push_back(name);
  }
  return calls;
}

}  // namespace hstujit::capi
