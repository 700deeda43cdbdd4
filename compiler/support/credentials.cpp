#include "compiler/support/credentials.h"

#include <fmt/format.h>

namespace hstujit {

namespace {

// Where credentials begin that end before the byte `at`; npos where there are none.
size_t begin_of_credentials(std::string_view text, size_t at) {
  constexpr std::string_view kScheme = "://", kBeforeWords = " \t\r\n'\"`<>()=";
  if (const size_t scheme = text.substr(0, at).find(kScheme); scheme != std::string_view::npos)
    return scheme + kScheme.size();
  // The word of the first '@': a password may have others.
  const std::string_view before = text.substr(0, text.find('@'));
  const size_t begin = before.find_last_of(kBeforeWords) + 1;  // 0 where there is none
  const size_t colon = before.find(':', begin), slash = before.find('/', begin);
  return colon != std::string_view::npos && colon < slash ? begin : std::string_view::npos;
}

}  // namespace

std::string hide_credentials(std::string_view text) {
  const size_t at = text.rfind('@');
  const size_t begin = at == std::string_view::npos ? at : begin_of_credentials(text, at);
  if (begin == std::string_view::npos) return std::string(text);
  return fmt::format("{}***{}", text.substr(0, begin), text.substr(at));
}

}  // namespace hstujit
