// Names of DLPack's data types.
#pragma once

#include <string>

#include "hstujit/dlpack.h"

namespace hstujit {

// As configs call it, and one that they do not have in the same way: "bf16", "int64", "fp64", "float8_e4m3fn".
std::string dtype_text(const DLDataType& type);

}  // namespace hstujit
