#include "compiler/spec/rounding.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

// A binary format by its stored mantissa bits and the exponent of its smallest and largest normal numbers.
struct Format {
  int mantissa;
  int min_exponent;
  int max_exponent;
};

constexpr Format kBf16Format{7, -126, 127};
constexpr Format kFp16Format{10, -14, 15};
constexpr Format kFp32Format{23, -126, 127};
constexpr int kDoubleMantissa = 52, kDoubleBias = 1023;

double round_to_format(const Format& format, double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const auto bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>((bits >> kDoubleMantissa) & 0x7ff) - kDoubleBias;
  double rounded;
  if (exponent >= format.min_exponent) {
    // Adding just under half a unit, plus the last kept bit, carries exactly when nearest-even rounds up.
    const int dropped = kDoubleMantissa - format.mantissa;
    const uint64_t half = uint64_t{1} << (dropped - 1);
    const uint64_t last = (bits >> dropped) & 1;
    rounded = std::bit_cast<double>((bits + half - 1 + last) & ~((uint64_t{1} << dropped) - 1));
  } else {
    // Below the normal numbers the spacing is constant; scaling by a power of two is exact.
    const int spacing = format.min_exponent - format.mantissa;
    rounded = std::ldexp(std::nearbyint(std::ldexp(value, -spacing)), spacing);
    rounded = std::copysign(rounded, value);
  }
  const double limit = std::bit_cast<double>(static_cast<uint64_t>(format.max_exponent + 1 + kDoubleBias)
                                             << kDoubleMantissa);  // 2^(max_exponent + 1)
  return std::abs(rounded) < limit ? rounded : std::copysign(std::numeric_limits<double>::infinity(), value);
}

// Elements that a thread converts at a time.
constexpr size_t kBlock = size_t{1} << 17;

template <typename Element, typename Source, typename Convert>
std::vector<std::byte> pack_as(const std::vector<Source>& values, Convert convert) {
  std::vector<std::byte> bytes(values.size() * sizeof(Element));
  parallel_blocks(values.size(), kBlock, [&](size_t begin, size_t end) {
    for (size_t index = begin; index < end; ++index) {
      const Element element = convert(values[index]);
      std::memcpy(bytes.data() + index * sizeof(Element), &element, sizeof(Element));
    }
  });
  return bytes;
}

template <typename Element, typename Target, typename Convert>
void unpack_as(std::span<const std::byte> bytes, std::span<Target> values, Convert convert) {
  for (size_t index = 0; index < values.size(); ++index) {
    Element element;
    std::memcpy(&element, bytes.data() + index * sizeof(Element), sizeof(Element));
    values[index] = convert(element);
  }
}

}  // namespace

double round_to(DataType type, double value) {
  switch (type) {
    case DataType::kBf16:
      return round_to_format(kBf16Format, value);
    case DataType::kFp16:
      return round_to_format(kFp16Format, value);
    case DataType::kFp32:
      return round_to_format(kFp32Format, value);
    default:
      return std::nearbyint(value);
  }
}

double smallest_step(DataType type) {
  const auto step = [](const Format& format) { return std::ldexp(1.0, format.min_exponent - format.mantissa); };
  switch (type) {
    case DataType::kBf16:
      return step(kBf16Format);
    case DataType::kFp16:
      return step(kFp16Format);
    case DataType::kFp32:
      return step(kFp32Format);
    case DataType::kInt32:
    case DataType::kInt64:
      return 0;
  }
  return 0;
}

double unit_roundoff(DataType type) {
  const auto unit = [](const Format& format) { return std::ldexp(1.0, -format.mantissa - 1); };
  switch (type) {
    case DataType::kBf16:
      return unit(kBf16Format);
    case DataType::kFp16:
      return unit(kFp16Format);
    case DataType::kFp32:
      return unit(kFp32Format);
    case DataType::kInt32:
    case DataType::kInt64:
      return 0;
  }
  return 0;
}

uint16_t to_bf16_bits(double value) {
  if (std::isnan(value)) return static_cast<uint16_t>(0x7fc0 | (std::signbit(value) ? 0x8000 : 0));
  // Every bf16 value is an fp32 value whose low half is zero.
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(round_to(DataType::kBf16, value))) >> 16);
}

double from_bf16_bits(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t to_fp16_bits(double value) {
  constexpr uint16_t kInfinity = 0x7c00, kQuietNan = 0x7e00;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | kQuietNan;
  const double magnitude = std::abs(round_to(DataType::kFp16, value));
  if (std::isinf(magnitude)) return sign | kInfinity;
  constexpr double kSmallestNormal = 0x1p-14;
  if (magnitude < kSmallestNormal) return sign | static_cast<uint16_t>(std::ldexp(magnitude, 24));
  const auto bits = std::bit_cast<uint64_t>(magnitude);
  const auto exponent = static_cast<uint16_t>((bits >> kDoubleMantissa) - kDoubleBias + 15);
  const auto mantissa = static_cast<uint16_t>((bits >> (kDoubleMantissa - 10)) & 0x3ff);
  return static_cast<uint16_t>(sign | exponent << 10 | mantissa);
}

double from_fp16_bits(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  if (exponent == 0x1f) {
    return std::copysign(mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity(),
                         sign);
  }
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

std::vector<std::byte> pack(const HostTensor& tensor, DataType type) {
  switch (type) {
    case DataType::kBf16:
      return pack_as<uint16_t>(tensor.reals, to_bf16_bits);
    case DataType::kFp16:
      return pack_as<uint16_t>(tensor.reals, to_fp16_bits);
    case DataType::kFp32:
      return pack_as<float>(tensor.reals, [](double value) { return static_cast<float>(value); });
    case DataType::kInt32:
      return pack_as<int32_t>(tensor.integers, [](int64_t value) { return static_cast<int32_t>(value); });
    case DataType::kInt64:
      return pack_as<int64_t>(tensor.integers, [](int64_t value) { return value; });
  }
  return {};
}

void unpack_reals(std::span<const std::byte> bytes, DataType type, std::span<double> reals) {
  assert(bytes.size() >= reals.size() * size_of(type));
  if (type == DataType::kBf16) return unpack_as<uint16_t>(bytes, reals, from_bf16_bits);
  if (type == DataType::kFp16) return unpack_as<uint16_t>(bytes, reals, from_fp16_bits);
  assert(type == DataType::kFp32);
  unpack_as<float>(bytes, reals, [](float value) { return static_cast<double>(value); });
}

HostTensor unpack(std::span<const std::byte> bytes, DataType type, std::vector<int64_t> shape) {
  HostTensor tensor;
  size_t elements = 1;
  for (const int64_t extent : shape) elements *= static_cast<size_t>(extent);
  assert(bytes.size() == elements * size_of(type));
  tensor.shape = std::move(shape);
  if (!is_integer(type)) {
    tensor.reals.resize(elements);
    unpack_reals(bytes, type, tensor.reals);
    return tensor;
  }
  tensor.integers.resize(elements);
  const std::span<int64_t> integers = tensor.integers;
  if (type == DataType::kInt32) {
    unpack_as<int32_t>(bytes, integers, [](int32_t value) { return static_cast<int64_t>(value); });
  } else {
    unpack_as<int64_t>(bytes, integers, [](int64_t value) { return value; });
  }
  return tensor;
}

}  // namespace hstujit
