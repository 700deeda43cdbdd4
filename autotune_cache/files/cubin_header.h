// The first bytes of a cubin, as far as the cache looks at them.
#pragma once

#include <cstddef>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

inline constexpr size_t kCubinHeaderBytes = 64;  // of a 64-bit ELF image

// Whether these bytes, of which the first kCubinHeaderBytes are enough, can be a cubin at all, which is an ELF image:
// no bytes, or others, are none, whatever their checksum says, and the driver would read past the end of a short one.
bool is_cubin(std::string_view bytes);

// kIo when the header names another machine than a GPU of the architecture `arch`, "sm_90a". A header that names none,
// or is of a version that is not known here, is left to the driver.
Status check_cubin_arch(std::string_view bytes, std::string_view arch);

}  // namespace hstujit
