// Where a remote cache is: HSTUJIT_REMOTE_CACHE, taken apart.
#pragma once

#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

struct RemoteUrl {
  std::string base;  // "https://host:8080/path", without user and password and without a slash at the end
  std::string user;  // as it is sent: percent signs are decoded
  std::string password;
};

// kInvalidArgument with the variable's name, the mistake and what is allowed; never with a part of the value.
Result<RemoteUrl> parse_remote_url(std::string_view text);

}  // namespace hstujit
