#include "tools/hstujit/command_table.h"

#include "compiler/support/text.h"

namespace hstujit {

namespace {

CommandOption option_row(const CLI::Option& option) {
  CommandOption row;
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  row.doc = option.get_description();
  row.required = option.get_required();
  if (option.get_items_expected_max() == 0) return row;
  row.value = value_of(option).name;
  if (row.value.find('|') != std::string::npos) row.choices = split(row.value, '|');
  if (option.get_positional()) row.value = option.get_name(true);
  return row;
}

}  // namespace

OptionValue value_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  return {type.substr(0, colon), colon == std::string::npos ? std::string() : type.substr(colon + 1)};
}

Command command_table(const CLI::App& app) {
  Command table{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) table.options.push_back(option_row(*option));
  for (const CLI::App* part : app.get_subcommands([](const CLI::App*) { return true; })) {
    table.commands.push_back(command_table(*part));
  }
  return table;
}

}  // namespace hstujit
