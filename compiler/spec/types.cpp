#include "compiler/spec/types.h"

namespace hstujit {

namespace {

template <typename Enumeration>
struct Spelling {
  Enumeration value;
  std::string_view text;
};

constexpr Spelling<DataType> kDataTypes[] = {{DataType::kBf16, "bf16"},
                                             {DataType::kFp16, "fp16"},
                                             {DataType::kFp32, "fp32"},
                                             {DataType::kInt32, "int32"},
                                             {DataType::kInt64, "int64"}};
constexpr Spelling<MatmulPrecision> kPrecisions[] = {{MatmulPrecision::kTf32, "tf32"},
                                                     {MatmulPrecision::kIeee, "ieee"}};
constexpr Spelling<Direction> kDirections[] = {{Direction::kForward, "forward"}, {Direction::kBackward, "backward"}};

template <typename Enumeration, size_t kCount>
std::string_view spell(const Spelling<Enumeration> (&table)[kCount], Enumeration value) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.text;
  }
  return "unknown";
}

template <typename Enumeration, size_t kCount>
std::optional<Enumeration> parse(const Spelling<Enumeration> (&table)[kCount], std::string_view text) {
  for (const auto& entry : table) {
    if (entry.text == text) return entry.value;
  }
  return std::nullopt;
}

}  // namespace

size_t size_of(DataType type) {
  switch (type) {
    case DataType::kBf16:
    case DataType::kFp16:
      return 2;
    case DataType::kFp32:
    case DataType::kInt32:
      return 4;
    case DataType::kInt64:
      return 8;
  }
  return 0;
}

std::string_view to_string(DataType type) { return spell(kDataTypes, type); }
std::string_view to_string(MatmulPrecision value) { return spell(kPrecisions, value); }
std::string_view to_string(Direction value) { return spell(kDirections, value); }

std::optional<DataType> parse_data_type(std::string_view text) { return parse(kDataTypes, text); }
std::optional<MatmulPrecision> parse_matmul_precision(std::string_view text) { return parse(kPrecisions, text); }
std::optional<Direction> parse_direction(std::string_view text) { return parse(kDirections, text); }

}  // namespace hstujit
