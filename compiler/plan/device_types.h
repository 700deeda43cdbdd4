// What device code calls a data type of tensors.
#pragma once

#include <string_view>

#include "compiler/spec/types.h"

namespace hstujit {

// The struct of templates/common/pack.cuh that reads and writes its elements.
constexpr std::string_view element_struct(DataType dtype) {
  return dtype == DataType::kBf16 ? "Bf16" : dtype == DataType::kFp16 ? "Fp16" : "Fp32";
}

// What pointers to it point at: fp32 as it is, 16-bit floats as their bits.
constexpr std::string_view pointed_at(DataType dtype) { return dtype == DataType::kFp32 ? "float" : "u16"; }

}  // namespace hstujit
