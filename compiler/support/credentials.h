// Names and passwords in texts that others have written, such as a proxy's URL in an error of libcurl, or a URL in the
// wrong variable.
#pragma once

#include <string>
#include <string_view>

namespace hstujit {

// "***" in place of what a "://" and the last '@' behind it enclose; without a "://", of a "user:password" that an '@'
// follows. A path that has an '@' stays as it is.
std::string hide_credentials(std::string_view text);

}  // namespace hstujit
