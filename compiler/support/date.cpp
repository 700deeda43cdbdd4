#include "compiler/support/date.h"

#include <ctime>

namespace hstujit {

std::string utc_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d", &parts)};
}

}  // namespace hstujit
