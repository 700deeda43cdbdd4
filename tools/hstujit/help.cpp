#include "tools/hstujit/help.h"

#include <sstream>

#include "tools/hstujit/command_table.h"

namespace hstujit {

std::string HelpFormatter::wrapped(const std::string& text) const {
  const size_t room = kHelpColumns - get_column_width();
  std::string lines;
  size_t used = 0;
  std::istringstream words(text);
  for (std::string word; words >> word; used += word.size()) {
    if (used > 0 && used + 1 + word.size() > room) {
      lines += '\n';  // CLI11 indents what follows
      used = 0;
    } else if (used > 0) {
      lines += ' ';
      ++used;
    }
    lines += word;
  }
  return lines;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_items_expected_max() == 0) return "";
  const std::string type = value_of(*option).name;
  const std::string value = type == "TEXT" ? "" : type;  // CLI11's own, where the option says none
  return (value.empty() ? "" : " " + value) + (option->get_required() ? " REQUIRED" : "");
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = CLI::Formatter::make_option_desc(option);
  if (const std::string allowed = value_of(*option).allowed; !allowed.empty()) text += "; " + allowed;
  if (const std::string& usual = option->get_default_str(); !usual.empty()) text += "; default: " + usual;
  return wrapped(text);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::ostringstream text;
  CLI::detail::format_help(text, command->get_display_name(true), wrapped(command->get_description()),
                           get_column_width());
  return text.str();
}

}  // namespace hstujit
