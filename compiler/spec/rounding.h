// Exact rounding of float64 to the data types, and dense tensors as the bytes that a device or a kernel sees.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/spec/op_spec.h"
#include "compiler/spec/types.h"

namespace hstujit {

// The nearest value of `type`, ties to even, in one rounding; infinity beyond the largest one. Integer types: the
// nearest integer.
double round_to(DataType type, double value);

// The distance of neighbouring values of a floating-point type near 0, below its normal numbers: 2^-24 for fp16. 0 for
// an integer type.
double smallest_step(DataType type);

// The largest relative error of round_to for normal numbers: 2^-8 for bf16, 2^-11 for fp16, 2^-24 for fp32. 0 for an
// integer type.
double unit_roundoff(DataType type);

// The variance of the error of `value` rounded to nearest with this unit roundoff, where the error is anything within
// half a unit in the last place to either side, all as likely.
inline double rounding_variance(double value, double unit) {
  // The power of two that the unit in the last place goes by: the value without its mantissa.
  const uint64_t exponent = std::bit_cast<uint64_t>(value) & 0x7ff0000000000000;
  const double half = std::bit_cast<double>(exponent) * unit;
  return half * half / 3;
}

constexpr double square(double value) { return value * value; }

// The 16 bits of the nearest value. A NaN stays a (quiet) NaN.
uint16_t to_bf16_bits(double value);
uint16_t to_fp16_bits(double value);
double from_bf16_bits(uint16_t bits);
double from_fp16_bits(uint16_t bits);

// Dense, row-major, little-endian. Floating-point types take `reals`, integer types `integers`.
std::vector<std::byte> pack(const HostTensor& tensor, DataType type);
// Its inverse; `bytes` must hold as many elements as `shape` says.
HostTensor unpack(std::span<const std::byte> bytes, DataType type, std::vector<int64_t> shape);
// As many elements of a floating-point type as `reals` has; `bytes` must hold them.
void unpack_reals(std::span<const std::byte> bytes, DataType type, std::span<double> reals);

}  // namespace hstujit
