// libhstujit_bundle.so as the cache sees it: opened for a bundle that is a zstd frame, and closed after it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "compiler/support/env.h"
#include "compiler/support/status.h"

namespace hstujit {

// Decompresses a zstd frame, from the first byte to the last. kIo for a damaged frame, and for one that
// decompresses to more than read_limits.h allows; kNoCompiler where there is no library for it.
using BundleDecoder = std::function<Result<std::string>(std::string_view frame)>;

// Opens HSTUJIT_BUNDLE_LIBRARY at each call, else libhstujit_bundle.so beside this library, then where the loader
// looks. kNoCompiler with every place looked at, or when its ABI is another one.
BundleDecoder bundle_decoder(const Environment& environment);

}  // namespace hstujit
