#include "compiler/spec/operators_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/spec/config.h"
#include "compiler/spec/fields_json.h"
#include "compiler/spec/op_spec.h"
#include "compiler/spec/schema.h"
#include "compiler/spec/types.h"
#include "compiler/support/json.h"

namespace hstujit {

namespace {

constexpr size_t kColumns = 120;

// "hstu_attention" is HstuAttention.
std::string type_name(std::string_view name) {
  std::string text;
  bool begins = true;
  for (const char c : name) {
    if (c != '_') text += begins && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return text;
}

bool is_enumeration(const Json& rules) {
  const Json choices = choices_in(rules);
  return !choices.empty() && choices[0].is_string();
}
bool is_data_type(const Json& rules) {
  return is_enumeration(rules) && parse_data_type(choices_in(rules)[0].get<std::string>()).has_value();
}
// One of a few names, or an expression.
bool is_expression(const Json& rules) { return rules.contains("anyOf") && is_enumeration(rules); }

// Lists the members of an operator's struct, in the order of its fields.
Json members_of(std::string_view op) {
  Json members = operator_schema(op)["properties"];
  const std::vector<std::string_view>& own = instance_field_names(op);
  if (std::find(own.begin(), own.end(), "small_batches") != own.end()) {
    members["small_batches"] = config_schema()["properties"]["defaults"]["properties"]["small_batches"];
  }
  return members;
}

// The values of each enumeration that is no data type, by the name of its field: all that some operator allows.
std::vector<std::pair<std::string, std::vector<std::string>>> enumerations() {
  std::vector<std::pair<std::string, std::vector<std::string>>> list;
  for (const std::string_view op : operator_names()) {
    const Json members = members_of(op);
    for (const auto& [name, rules] : members.items()) {
      if (!is_enumeration(rules) || is_data_type(rules)) continue;
      auto known = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
      if (known == list.end()) known = list.insert(list.end(), {name, {}});
      for (const std::string choice : choices_in(rules)) {
        if (std::find(known->second.begin(), known->second.end(), choice) == known->second.end())
          known->second.push_back(choice);
      }
    }
  }
  std::sort(list.begin(), list.end());
  return list;
}

std::string enumeration_text(const std::string& field, const std::vector<std::string>& values) {
  const std::string type = type_name(field);
  std::string text =
      fmt::format("enum class {} {{ {} }};\ninline const char* to_string({} value) {{\n  switch (value) {{\n", type,
                  fmt::join(values, ", "), type);
  for (const std::string& value : values)
    text += fmt::format("    case {}::{}:\n      return \"{}\";\n", type, value, value);
  return text + "  }\n  return \"\";\n}\n\n";
}

std::string bounds_text(const Json& rules) {
  if (const Json allowed = choices_in(rules); !allowed.empty()) {
    std::vector<std::string> choices;
    for (const Json& choice : allowed)
      choices.push_back(choice.is_string() ? choice.get<std::string>() : dump_json(choice));
    return fmt::format("{}", fmt::join(choices, ", "));
  }
  if (!rules.contains("minimum")) return "";
  std::string text = fmt::format("{} to {}", dump_json(rules["minimum"]), dump_json(rules["maximum"]));
  return text;
}

// A comment of as many lines as it needs.
std::string comment(const std::string& text) {
  std::string lines, line = "  //";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line = "  //";
    }
    line += " " + word;
    begin = end + 1;
  }
  return lines + line + "\n";
}

struct Member {
  std::string type, usual;  // C++ text; usual is empty of what must be given
};

Member member_of(const std::string& name, const Json& rules, bool required) {
  const Json usual = rules.value("default", Json());
  if (is_enumeration(rules)) {
    const std::string type = is_data_type(rules) ? "DataType" : type_name(name);
    const std::string value = type + "::" + usual.get<std::string>();
    return {is_expression(rules) ? fmt::format("ExpressionOr<{}>", type) : type, value};
  }
  if (rules.value("type", Json()) == "boolean") return {"bool", dump_json(usual)};
  if (rules.value("type", Json()) == "string") return {"std::string", required ? "" : dump_json(usual)};
  return {"std::int64_t", required ? "" : dump_json(usual)};
}

std::string struct_text(std::string_view op) {
  const Json schema = operator_schema(op);
  std::string members, json;
  const Json listed = members_of(op);
  for (const auto& [name, rules] : listed.items()) {
    const bool required =
        std::find(schema["required"].begin(), schema["required"].end(), name) != schema["required"].end();
    const Member member = member_of(name, rules, required);
    const std::string bounds = bounds_text(rules);
    members += comment(fmt::format("{}{}{}", rules.value("description", ""), bounds.empty() ? "" : "; " + bounds,
                                   required ? "; must be given" : ""));
    members += fmt::format("  {} {} = {};\n", member.type, name, required ? "0" : member.usual);
    json += fmt::format("    text.add(\"{}\", {}{});\n", name, name, required ? "" : ", " + member.usual);
  }
  return fmt::format(
      "// docs/parameters.md, \"{0}\".\n"
      "struct {1} {{\n{2}\n  std::string json() const {{\n    detail::InstanceText text(\"{0}\");\n{3}"
      "    return text.str();\n  }}\n}};\n\n",
      op, type_name(op), members, json);
}

}  // namespace

std::string operators_header() {
  std::string text =
      "// A struct for each operator: its parameters, with their defaults and what they may be.\n"
      "//\n"
      "// Written by `make docs` from the field lists that validate them; a test keeps the two equal. json() is what\n"
      "// hstujit_op_create takes, and an entry of a config but for its name and lengths (docs/config.md). It leaves "
      "out\n"
      "// what has its default. Nothing is checked here: the library says what is wrong with a value, and what is "
      "allowed.\n"
      "#ifndef HSTUJIT_OPERATORS_HPP\n"
      "#define HSTUJIT_OPERATORS_HPP\n\n"
      "#include <cstdint>\n"
      "#include <string>\n\n"
      "#include \"hstujit/data_type.hpp\"\n\n"
      "namespace hstujit::api {\n\n";
  for (const auto& [field, values] : enumerations()) text += enumeration_text(field, values);
  for (const std::string_view op : operator_names()) text += struct_text(op);
  return text + "}  // namespace hstujit::api\n\n#endif\n";
}

}  // namespace hstujit
