#include "compiler/spec/call/declaration.h"

#include <utility>

#include "compiler/support/text.h"

namespace hstujit {

namespace {

using Names = CallParameter::Names;

Names names_in(std::string_view list) { return list.empty() ? Names() : split(list, ' '); }

}  // namespace

CallParameter& CallDeclaration::declare(const std::string& parameter, CallSource source) {
  CallParameter& declared = parameters_[parameter];
  declared = {};
  declared.source = source;
  return declared;
}

CallDeclaration& CallDeclaration::size(Text parameter, std::initializer_list<CallAxes> axes) {
  CallParameter& declared = declare(parameter, CallSource::kSize);
  for (const CallAxes& group : axes)
    declared.axes.push_back({names_in(group.arguments), group.axis, names_in(group.unless), group.when});
  return *this;
}

CallDeclaration& CallDeclaration::dtype(Text parameter, Text arguments) {
  declare(parameter, CallSource::kDtype).arguments = names_in(arguments);
  return *this;
}

CallDeclaration& CallDeclaration::alignment(Text parameter) {
  declare(parameter, CallSource::kAlignment);
  return *this;
}

CallDeclaration& CallDeclaration::presence(Text parameter, Text given, Text left_out, Text beside) {
  CallParameter& declared = declare(parameter, CallSource::kPresence);
  declared.arguments = names_in(given);
  declared.left_out = names_in(left_out);
  declared.beside = beside;
  declared.shapes = true;
  return *this;
}

CallDeclaration& CallDeclaration::form(Text parameter, Text beside) {
  CallParameter& declared = declare(parameter, CallSource::kForm);
  declared.arguments = names_in(beside);
  declared.shapes = true;
  return *this;
}

CallDeclaration& CallDeclaration::wanted(Text parameter, Text input) {
  CallParameter& declared = declare(parameter, CallSource::kWanted);
  declared.of = input;
  declared.shapes = true;
  return *this;
}

CallDeclaration& CallDeclaration::of_steps(Text parameter) {
  declare(parameter, CallSource::kSteps);
  return *this;
}

CallDeclaration& CallDeclaration::keywords(Text parameters) {
  for (const std::string& parameter : names_in(parameters)) declare(parameter, CallSource::kKeyword);
  return *this;
}

CallDeclaration& CallDeclaration::declares(Text parameter) {
  declares_ = parameter;
  return keywords(parameter);
}

CallDeclaration& CallDeclaration::shaping(Text parameters) {
  for (const std::string& parameter : names_in(parameters)) parameters_[parameter].shapes = true;
  return *this;
}

CallDeclaration& CallDeclaration::forward_only(Text parameters) {
  for (const std::string& parameter : names_in(parameters)) parameters_[parameter].forward_only = true;
  return *this;
}

CallDeclaration& CallDeclaration::gradients(Text inputs) {
  gradients_ = names_in(inputs);
  return *this;
}

CallDeclaration& CallDeclaration::more_of_dtype(Text parameter, Text arguments) {
  for (std::string& name : names_in(arguments)) parameters_.at(parameter).arguments.push_back(std::move(name));
  return *this;
}

CallDeclaration& CallDeclaration::more_gradients(Text inputs) {
  if (gradients_.empty()) return *this;
  for (std::string& name : names_in(inputs)) gradients_.push_back(std::move(name));
  return *this;
}

CallDeclaration& CallDeclaration::differentiable(Text outputs) {
  differentiable_ = names_in(outputs);
  return *this;
}

CallDeclaration& CallDeclaration::passed_on(Text input, Text output, Text factor, Text parameter, Text value) {
  passed_on_.push_back({input, output, factor, parameter, value});
  return *this;
}

CallDeclaration& CallDeclaration::usual(Text argument, double value) {
  usual_[argument] = value;
  return *this;
}

CallDeclaration& CallDeclaration::letter(Text letter, Text argument, int axis) {
  letters_.push_back({letter, argument, axis});
  return *this;
}

const CallParameter* CallDeclaration::find(std::string_view parameter) const {
  const auto found = parameters_.find(parameter);
  return found == parameters_.end() ? nullptr : &found->second;
}

std::string gradient_name(std::string_view argument) { return "d" + std::string(argument); }

CallDeclaration& row_call(CallDeclaration& call, const char* rows, const char* weights, const char* outputs) {
  std::string of_rows = rows;
  for (const std::string& output : names_in(outputs)) of_rows += " " + gradient_name(output);
  call.size("width", {{of_rows.c_str(), -1}, {weights, -1}})
      .dtype("dtype", of_rows.c_str())
      .alignment("alignment")
      .differentiable(outputs);
  if (*weights == '\0') return call.gradients(rows);
  return call.dtype("weight_dtype", weights).gradients((std::string(rows) + " " + weights).c_str());
}

CallDeclaration& sequence_call(CallDeclaration& call, const char* rows, const char* weights, const char* outputs) {
  return row_call(call, rows, weights, outputs).dtype("offsets_dtype", "seq_offsets");
}

}  // namespace hstujit
