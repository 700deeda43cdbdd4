#include "tools/hstujit/help.h"

#include <sstream>

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

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return wrapped(CLI::Formatter::make_option_desc(option));
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::ostringstream text;
  CLI::detail::format_help(text, command->get_display_name(true), wrapped(command->get_description()),
                           get_column_width());
  return text.str();
}

}  // namespace hstujit
