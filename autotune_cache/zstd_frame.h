// Bytes compressed by zstd, from whoever wrote them.
#pragma once

#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

bool is_zstd(std::string_view bytes);

// What one frame, from the first byte to the last, unpacks to. kIo for a damaged frame, and for one that unpacks to
// more than read_limits.h allows.
Result<std::string> decompress_zstd(std::string_view frame);

}  // namespace hstujit
