#include "compiler/spec/parameters_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/spec/fields_json.h"
#include "compiler/spec/op_spec.h"
#include "compiler/spec/schema.h"
#include "compiler/support/json.h"

namespace hstujit {

namespace {

std::string allowed_text(const Json& rules) {
  std::string text;
  if (const Json choices = choices_in(rules); !choices.empty()) {
    for (const Json& choice : choices)
      text += fmt::format("{}`{}`", text.empty() ? "" : ", ",
                          choice.is_string() ? choice.get<std::string>() : dump_json(choice));
    return rules.contains("anyOf") ? text + ", [expression](expressions.md#scores)" : text;
  }
  const Json type = rules.value("type", Json());
  if (type == "boolean") return "`true`, `false`";
  if (type.is_array()) text = "`true`, `false`, ";
  text += type.is_array() || type == "integer" ? "integer" : type == "number" ? "number" : "text";
  if (rules.contains("minimum") && rules.contains("maximum"))
    text += fmt::format(" from {} to {}", dump_json(rules["minimum"]), dump_json(rules["maximum"]));
  return text;
}

std::string row_text(const std::string& name, const Json& rules, bool required) {
  const Json initial = rules.value("default", Json());
  const std::string text = initial.is_string() ? initial.get<std::string>() : dump_json(initial);
  return fmt::format("| `{}` | {} | {} | {} |\n", name, required ? "required" : "`" + text + "`", allowed_text(rules),
                     rules.value("description", ""));
}

}  // namespace

std::string parameters_page() {
  std::string page =
      "# Parameters of operators\n\n"
      "Written by `make docs` from the field lists that validate them; a test keeps the two equal. [ops.md](ops.md) "
      "says\n"
      "what they mean for the result, [config.md](config.md#ops) which fields every entry of a config has beside "
      "them.\n";
  for (const std::string_view op : operator_names()) {
    page += fmt::format("\n## {}\n\n| parameter | default | allowed | |\n|---|---|---|---|\n", op);
    const Json schema = operator_schema(op);
    const Json& required = schema["required"];
    const Json parameters = config_parameters(op);
    for (const auto& [name, rules] : parameters.items()) {
      const bool must = std::find(required.begin(), required.end(), name) != required.end();
      page += row_text(name, rules, must);
    }
  }
  return page;
}

}  // namespace hstujit
