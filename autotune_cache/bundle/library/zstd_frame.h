// Bytes compressed by zstd, from whoever wrote them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// The number of bytes that one frame, from the first byte to the last, unpacks to. kIo for a damaged frame, and for one
// that unpacks to more than read_limits.h allows; kOutOfMemory where there is no memory for its window.
Result<size_t> zstd_size(std::string_view frame);
// Writes these bytes. kInvalidArgument unless `bytes` has room for exactly so many.
Status decompress_zstd(std::string_view frame, std::span<char> bytes);

}  // namespace hstujit
