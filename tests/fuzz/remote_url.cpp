// The URL of a remote cache, whose user and password no message may show.
#include "autotune_cache/remote/remote_url.h"

#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

void remote_url(std::string_view input) {
  const auto url = parse_remote_url(input);
  static const std::string kNoUrl = parse_remote_url("x").status().message();
  static const std::string kAllowed = kNoUrl.substr(kNoUrl.find(';'));
  if (!parsed(url)) {
    expect(url.status().message().ends_with(kAllowed), "a refusal says what is allowed, and nothing of the value");
    expect(url.status().message().size() < kAllowed.size() + 120, "a refusal says nothing of the value");
    return;
  }
  const auto again = parse_remote_url(url->base);
  expect(parsed(again), "the base of a URL is a URL");
  expect(again->base == url->base && again->user.empty() && again->password.empty(),
         "the base of a URL has no user and no password");
}

}  // namespace hstujit::fuzz
