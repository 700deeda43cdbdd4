// The data types of tensors, and the text that specs of operators (operators.hpp) are written as.
#ifndef HSTUJIT_DATA_TYPE_HPP
#define HSTUJIT_DATA_TYPE_HPP

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "hstujit/dlpack.h"

namespace hstujit::api {

// Spelt as in configs.
enum class DataType { bf16, fp16, fp32, int32, int64 };

// "bf16"; "" for a value that is none of them, which the library then refuses.
inline const char* to_string(DataType type) {
  switch (type) {
    case DataType::bf16:
      return "bf16";
    case DataType::fp16:
      return "fp16";
    case DataType::fp32:
      return "fp32";
    case DataType::int32:
      return "int32";
    case DataType::int64:
      return "int64";
  }
  return "";
}

inline DLDataType dl_type(DataType type) {
  switch (type) {
    case DataType::bf16:
      return {kDLBfloat, 16, 1};
    case DataType::fp16:
      return {kDLFloat, 16, 1};
    case DataType::fp32:
      return {kDLFloat, 32, 1};
    case DataType::int32:
      return {kDLInt, 32, 1};
    case DataType::int64:
      return {kDLInt, 64, 1};
  }
  return {kDLOpaqueHandle, 0, 1};
}

// The data type of a C++ type. Specialise it for a 16-bit type of your own:
//   template <> struct hstujit::api::ElementType<__nv_bfloat16> {
//     static constexpr DataType value = DataType::bf16;
//   };
template <typename T, typename Enable = void>
struct ElementType {
  static_assert(!std::is_same_v<T, T>,
                "no data type follows from this C++ type: name it, as in "
                "Tensor(address, DataType::bf16, {rows, columns}), or specialise ElementType");
};
template <>
struct ElementType<float> {
  static constexpr DataType value = DataType::fp32;
};
template <typename T>
struct ElementType<T, std::enable_if_t<std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 4>> {
  static constexpr DataType value = DataType::int32;
};
template <typename T>
struct ElementType<T, std::enable_if_t<std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8>> {
  static constexpr DataType value = DataType::int64;
};

// One of an enumeration's names, or an expression in its place (docs/expressions.md), as text.
template <typename Enum>
struct ExpressionOr {
  ExpressionOr(Enum value) : text(to_string(value)) {}
  ExpressionOr(std::string expression) : text(std::move(expression)) {}
  ExpressionOr(const char* expression) : text(expression) {}

  std::string text;
};

namespace detail {

// The JSON of one instance: what must be given, and what differs from its default.
class InstanceText {
 public:
  explicit InstanceText(const char* op) : text_(std::string("{\"op\": \"") + op + "\"") {}

  InstanceText& add(const char* name, std::int64_t value) { return append(name, std::to_string(value)); }
  InstanceText& add(const char* name, std::int64_t value, std::int64_t usual) {
    return value == usual ? *this : add(name, value);
  }
  InstanceText& add(const char* name, bool value, bool usual) {
    return value == usual ? *this : append(name, value ? "true" : "false");
  }
  template <typename Enum, typename = std::enable_if_t<std::is_enum_v<Enum>>>
  InstanceText& add(const char* name, Enum value, Enum usual) {
    return value == usual ? *this : append(name, std::string("\"") + to_string(value) + "\"");
  }

  template <typename Enum>
  InstanceText& add(const char* name, const ExpressionOr<Enum>& value, Enum usual) {
    return add(name, value.text, to_string(usual));
  }

  InstanceText& add(const char* name, const std::string& value, const char* usual) {
    return value == usual ? *this : append(name, quoted(value));
  }

  std::string str() const { return text_ + "}"; }

 private:
  // As a string of JSON.
  static std::string quoted(const std::string& value) {
    static const char* const kDigits = "0123456789abcdef";
    std::string text = "\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') {
        text += '\\';
        text += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        text += "\\u00";
        text += kDigits[static_cast<unsigned char>(c) / 16];
        text += kDigits[static_cast<unsigned char>(c) % 16];
      } else {
        text += c;
      }
    }
    return text + '"';
  }

  InstanceText& append(const char* name, const std::string& value) {
    text_ += std::string(", \"") + name + "\": " + value;
    return *this;
  }

  std::string text_;
};

}  // namespace detail

}  // namespace hstujit::api

#endif
