// The small enumerations that specs, plans and launches share, and their JSON spellings.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hstujit {

enum class DataType { kBf16, kFp16, kFp32, kInt32, kInt64 };

// How matrix products of fp32 data are done. 16-bit data always uses the tensor cores.
enum class MatmulPrecision { kTf32, kIeee };

enum class Direction { kForward, kBackward };

size_t size_of(DataType type);  // bytes
constexpr bool is_integer(DataType type) { return type == DataType::kInt32 || type == DataType::kInt64; }

std::string_view to_string(DataType type);          // "bf16" "fp16" "fp32" "int32" "int64"
std::string_view to_string(MatmulPrecision value);  // "tf32" "ieee"
std::string_view to_string(Direction value);        // "forward" "backward"

std::optional<DataType> parse_data_type(std::string_view text);
std::optional<MatmulPrecision> parse_matmul_precision(std::string_view text);
std::optional<Direction> parse_direction(std::string_view text);

}  // namespace hstujit
