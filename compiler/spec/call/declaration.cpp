#include "compiler/spec/call/declaration.h"

#include <utility>

#include "compiler/support/text.h"

namespace hstujit {

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  for (std::string& name : split(list, ' ')) {
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

CallDeclaration& CallDeclaration::declare(const std::string& parameter, CallParameter source) {
  parameters_[parameter] = std::move(source);
  return *this;
}

CallDeclaration& CallDeclaration::size(const std::string& parameter, std::vector<CallAxes> axes) {
  return declare(parameter, {.source = CallSource::kSize, .axes = std::move(axes)});
}

CallDeclaration& CallDeclaration::dtype(const std::string& parameter, std::string_view arguments) {
  return declare(parameter, {.source = CallSource::kDtype, .arguments = names_in(arguments)});
}

CallDeclaration& CallDeclaration::alignment(const std::string& parameter) {
  return declare(parameter, {.source = CallSource::kAlignment});
}

CallDeclaration& CallDeclaration::presence(const std::string& parameter, std::string_view given,
                                           std::string_view left_out, const std::string& beside) {
  return declare(parameter, {.source = CallSource::kPresence,
                             .arguments = names_in(given),
                             .left_out = names_in(left_out),
                             .beside = beside,
                             .shapes = true});
}

CallDeclaration& CallDeclaration::form(const std::string& parameter, std::string_view beside) {
  return declare(parameter, {.source = CallSource::kForm, .arguments = names_in(beside), .shapes = true});
}

CallDeclaration& CallDeclaration::wanted(const std::string& parameter, const std::string& input) {
  return declare(parameter, {.source = CallSource::kWanted, .of = input, .shapes = true});
}

CallDeclaration& CallDeclaration::of_steps(const std::string& parameter) {
  return declare(parameter, {.source = CallSource::kSteps});
}

CallDeclaration& CallDeclaration::keywords(std::string_view parameters) {
  for (const std::string& parameter : names_in(parameters)) declare(parameter, {});
  return *this;
}

CallDeclaration& CallDeclaration::shaping(std::string_view parameters) {
  for (const std::string& parameter : names_in(parameters)) parameters_[parameter].shapes = true;
  return *this;
}

CallDeclaration& CallDeclaration::forward_only(std::string_view parameters) {
  for (const std::string& parameter : names_in(parameters)) parameters_[parameter].forward_only = true;
  return *this;
}

CallDeclaration& CallDeclaration::gradients(std::string_view inputs) {
  gradients_ = names_in(inputs);
  return *this;
}

CallDeclaration& CallDeclaration::differentiable(std::string_view outputs) {
  differentiable_ = names_in(outputs);
  return *this;
}

CallDeclaration& CallDeclaration::passed_on(PassedOn input) {
  passed_on_.push_back(std::move(input));
  return *this;
}

CallDeclaration& CallDeclaration::usual(const std::string& argument, double value) {
  usual_[argument] = value;
  return *this;
}

CallDeclaration& CallDeclaration::letter(const std::string& letter, const std::string& argument, int axis) {
  letters_.push_back({letter, argument, axis});
  return *this;
}

const CallParameter* CallDeclaration::find(std::string_view parameter) const {
  const auto found = parameters_.find(parameter);
  return found == parameters_.end() ? nullptr : &found->second;
}

std::string gradient_name(std::string_view argument) { return "d" + std::string(argument); }

std::string gradient_names(std::string_view arguments) {
  std::string names;
  for (const std::string& argument : names_in(arguments)) names += (names.empty() ? "" : " ") + gradient_name(argument);
  return names;
}

CallDeclaration row_call(const std::string& rows, const std::string& weights, const std::string& outputs) {
  const std::string of_rows = rows + " " + gradient_names(outputs);
  CallDeclaration call;
  call.size("width", {{of_rows, -1}, {weights, -1}})
      .dtype("dtype", of_rows)
      .alignment("alignment")
      .gradients(rows + " " + weights)
      .differentiable(outputs);
  if (!weights.empty()) call.dtype("weight_dtype", weights);
  return call;
}

CallDeclaration sequence_call(const std::string& rows, const std::string& weights, const std::string& outputs) {
  return row_call(rows, weights, outputs).dtype("offsets_dtype", "seq_offsets");
}

}  // namespace hstujit
