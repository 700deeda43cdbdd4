#include "autotune_cache/remote/remote_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace hstujit {
namespace {

constexpr int kMaxPort = 65535;

// "%41" is "A"; nothing when two hexadecimal digits do not follow a percent sign.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    if (text.front() != '%') {
      decoded += text.front();
      text.remove_prefix(1);
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.substr(1, 2);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || parsed.ptr != digits.data() + 2) return std::nullopt;
    decoded += static_cast<char>(byte);
    text.remove_prefix(3);
  }
  return decoded;
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), port);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && port > 0 && port <= kMaxPort;
}

// "host", "host:80", "[::1]", "[::1]:80".
bool is_host(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const size_t end = bracketed ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos || end == (bracketed ? 1 : 0)) return false;
  const std::string_view rest = text.substr(bracketed ? end + 1 : end);
  return rest.empty() || (rest.front() == ':' && is_port(rest.substr(1)));
}

// Without the value: it may hold a password or a token, and where that stands is unknown when it is no URL. And without
// an "@", for which doctor would hide the sentence.
Status refused(std::string_view mistake) {
  return Status(
      Code::kInvalidArgument,
      fmt::format("HSTUJIT_REMOTE_CACHE {}; allowed: http://host[:port][/path] or https://host[:port][/path], with or "
                  "without a user and password before the host, and no blanks, \"?\", \"#\" or \"\\\"; the value is "
                  "not shown, since it may hold a password",
                  mistake));
}

}  // namespace

Result<RemoteUrl> parse_remote_url(std::string_view text) {
  const size_t scheme = text.starts_with("https://") ? 8 : text.starts_with("http://") ? 7 : 0;
  const size_t slash = text.find('/', scheme);
  const std::string_view authority = text.substr(scheme, slash == std::string_view::npos ? slash : slash - scheme);
  const size_t at = authority.rfind('@');
  const std::string_view credentials = at == std::string_view::npos ? std::string_view() : authority.substr(0, at);
  const std::string_view host = at == std::string_view::npos ? authority : authority.substr(at + 1);
  const auto is_bad = [](char c) { return c <= ' ' || c == '\x7f' || c == '?' || c == '#' || c == '\\'; };
  if (scheme == 0) return refused("does not begin with http:// or https://");
  if (std::any_of(text.begin(), text.end(), is_bad)) return refused("has a blank, \"?\", \"#\" or \"\\\"");
  // The host would be what stands before it: part of the user or of the password.
  if (slash != std::string_view::npos && text.find('@', slash) != std::string_view::npos)
    return refused(
        "has a \"@\" after a \"/\"; a \"/\" of the user or password is written %2F, a \"@\" of the path %40");
  if (!is_host(host)) return refused("has no host, or a port that is no number from 1 to 65535");

  const size_t colon = credentials.find(':');
  const std::optional<std::string> user = percent_decoded(credentials.substr(0, colon));
  const std::optional<std::string> password =
      percent_decoded(colon == std::string_view::npos ? std::string_view() : credentials.substr(colon + 1));
  if (!user || !password || (at != std::string_view::npos && user->empty()))
    return refused("has no user before \"@\", or a \"%\" there without two hexadecimal digits");
  // libcurl would take what stands before it for the whole.
  if (user->find('\0') != std::string::npos || password->find('\0') != std::string::npos)
    return refused("has a %00 in the user or password");

  std::string_view path = slash == std::string_view::npos ? std::string_view() : text.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  return RemoteUrl{fmt::format("{}{}{}", text.substr(0, scheme), host, path), *user, *password};
}

}  // namespace hstujit
