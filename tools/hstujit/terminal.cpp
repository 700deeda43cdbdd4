#include "tools/hstujit/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace hstujit {

bool is_terminal(int file_descriptor) { return isatty(file_descriptor) == 1; }

bool wants_colour(int file_descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool refused = no_colour != nullptr && *no_colour != 0;
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return is_terminal(file_descriptor) && !refused && !dumb;
}

int terminal_width(int file_descriptor) {
  constexpr int kUsual = 80;
  winsize size = {};
  return ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace hstujit
