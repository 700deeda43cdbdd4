// The exit codes that docs/cli.md promises.
#pragma once

namespace hstujit {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadRequest = 2;
inline constexpr int kUnavailable = 3;

}  // namespace hstujit
