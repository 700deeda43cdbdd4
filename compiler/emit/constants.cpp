#include "compiler/emit/constants.h"

#include <fmt/format.h>

#include <cctype>
#include <limits>

#include "compiler/emit/expression.h"
#include "compiler/emit/identifier.h"
#include "compiler/spec/fields_json.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

constexpr std::string_view kMaskTrivial = "kMaskTrivial";

std::string camel_case(std::string_view words) {
  std::string result;
  bool upper = true;
  for (const char c : words) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      upper = true;
      continue;
    }
    result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return result;
}

std::string int_line(std::string_view name, int64_t value) {
  return fmt::format("  static constexpr int {} = {};\n", name, value);
}
std::string double_line(std::string_view name, double value) {
  return fmt::format("  static constexpr double {} = {};\n", name, double_literal(value));
}
std::string bool_line(std::string_view name, bool value) {
  return fmt::format("  static constexpr bool {} = {};\n", name, value);
}

// Prints one line per allowed spelling whose constant `user` names, in the order in which the field list gives them.
std::string choice_lines(std::string_view field, std::string_view value, const std::vector<std::string>& choices,
                         std::string_view user) {
  std::string text;
  for (const std::string& choice : choices) {
    const std::string name = constant_name(field) + camel_case(choice);
    if (names_identifier(user, name)) text += bool_line(name, choice == value);
  }
  return text;
}

const char* type_of(const ParamSlot& slot) {
  switch (slot.kind) {
    case ParamSlot::Kind::kPointer:
    case ParamSlot::Kind::kWorkspace:
      return slot.type.c_str();
    case ParamSlot::Kind::kStride:
    case ParamSlot::Kind::kSize:
    case ParamSlot::Kind::kLong:
      return "long long";
    case ParamSlot::Kind::kFloat:
    case ParamSlot::Kind::kInverse:
      return "float";
    case ParamSlot::Kind::kInt:
      return "int";
    case ParamSlot::Kind::kTensorMap:
      return "TensorMap";
  }
  return "";
}

}  // namespace

std::string constant_name(std::string_view field) { return fmt::format("k{}", camel_case(field)); }

Result<std::string> print_spec(const nlohmann::ordered_json& values, const nlohmann::ordered_json& schema,
                               std::optional<bool> mask_trivial, std::string_view operands, std::string_view user) {
  std::string text = "struct Spec {\n";
  for (const auto& [field, value] : values.items()) {
    if (field == "op") continue;
    const std::string name = constant_name(field);
    if (value.is_string()) {
      const nlohmann::ordered_json choices =
          choices_in(schema.value(nlohmann::ordered_json::json_pointer("/properties/" + field), Json::object()));
      text += choice_lines(
          field, value.get<std::string>(),
          choices.empty() ? std::vector{value.get<std::string>()} : choices.get<std::vector<std::string>>(), user);
      continue;
    }
    if (!names_identifier(user, name)) continue;
    if (value.is_boolean()) {
      text += int_line(name, value.get<bool>() ? 1 : 0);
    } else if (value.is_number_integer()) {
      const auto number = value.get<int64_t>();
      if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
        return Status(Code::kUnsupported,
                      fmt::format("parameter {} is {}; generated source holds integers from {} to {}", field,
                                  dump_json(value), std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
      }
      text += int_line(name, number);
    } else if (value.is_number()) {
      text += double_line(name, value.get<double>());
    } else {
      return Status(Code::kUnsupported, fmt::format("parameter {} is a JSON {}; generated source holds integers, "
                                                    "numbers, booleans and texts",
                                                    field, value.type_name()));
    }
  }
  if (mask_trivial && names_identifier(user, kMaskTrivial)) text += bool_line(kMaskTrivial, *mask_trivial);
  text += operands;
  return text + "};\n";
}

std::string print_config(const KernelConfig& config, const Constants& derived, std::string_view user) {
  std::string text = "struct Config {\n";
  for_each_config_field(config, [&](const auto& field, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      text += choice_lines(field.name, value, split(field.choices, ' '), user);
    } else {
      const std::string name = constant_name(field.name);
      if (names_identifier(user, name)) text += int_line(name, value);
    }
  });
  for (const auto& [field, value] : derived) {
    const std::string name = constant_name(field);
    if (names_identifier(user, name)) text += int_line(name, value);
  }
  return text + "};\n";
}

std::string print_params(const std::vector<ParamSlot>& slots) {
  std::string text = "struct Params {\n";
  for (const ParamSlot& slot : slots) text += fmt::format("  {} {};\n", type_of(slot), slot.name);
  text += "};\n";
  const std::vector<uint32_t> offsets = slot_offsets(slots);
  text += fmt::format("static_assert(sizeof(Params) == {}, \"the launcher packs this struct\");\n", offsets.back());
  return text;
}

}  // namespace hstujit
