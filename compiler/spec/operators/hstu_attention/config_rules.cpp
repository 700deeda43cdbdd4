#include "compiler/spec/operators/hstu_attention/config_rules.h"

#include <fmt/format.h>

namespace hstujit {

void ConfigRules::broken(std::string_view field, const Json& value, std::string_view rule) {
  broken(field, brief_json(value), rule);
}

void ConfigRules::broken(std::string_view field, const std::string& is, std::string_view rule) {
  const std::string place = join_path(path_, field);
  mistakes_.check(place, Status(Code::kInvalidConfig, fmt::format("{} is {}, but {}", place, is, rule)));
}

}  // namespace hstujit
