// Names of data types in device code.
#pragma once

#include <string_view>

#include "compiler/spec/types.h"

namespace hstujit {

// The struct of templates/common/pack.cuh that reads and writes its elements.
constexpr std::string_view element_struct(DataType dtype) {
  return dtype == DataType::kBf16 ? "Bf16" : dtype == DataType::kFp16 ? "Fp16" : "Fp32";
}

// Type that pointers to a tensor's elements point at: fp32 and integers as they are, 16-bit floats as their bits.
constexpr std::string_view pointed_at(DataType dtype) {
  switch (dtype) {
    case DataType::kFp32:
      return "float";
    case DataType::kInt32:
      return "int";
    case DataType::kInt64:
      return "i64";
    default:
      return "u16";
  }
}

}  // namespace hstujit
