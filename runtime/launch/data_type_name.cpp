#include "runtime/launch/data_type_name.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace hstujit {

std::string dtype_text(const DLDataType& type) {
  struct Kind {
    std::string_view name;
    bool with_bits;
  };
  constexpr Kind kKinds[] = {{"int", true},
                             {"uint", true},
                             {"fp", true},
                             {"handle", true},
                             {"bf", true},
                             {"complex", true},
                             {"bool", false},
                             {"float8_e3m4", false},
                             {"float8_e4m3", false},
                             {"float8_e4m3b11fnuz", false},
                             {"float8_e4m3fn", false},
                             {"float8_e4m3fnuz", false},
                             {"float8_e5m2", false},
                             {"float8_e5m2fnuz", false},
                             {"float8_e8m0fnu", false},
                             {"float6_e2m3fn", false},
                             {"float6_e3m2fn", false},
                             {"float4_e2m1fn", false}};
  std::string text = fmt::format("DLPack type {} of {} bits", type.code, type.bits);
  if (type.code < std::size(kKinds)) {
    const Kind& kind = kKinds[type.code];
    text = kind.with_bits ? fmt::format("{}{}", kind.name, type.bits) : std::string(kind.name);
  }
  if (type.lanes != 1) text += fmt::format("x{}", type.lanes);
  return text;
}

}  // namespace hstujit
