// Sentences about fields of one object that a rule between them is broken by.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "compiler/spec/field_rules.h"

namespace hstujit {

class ConfigRules {
 public:
  ConfigRules(const std::string& path, Mistakes& mistakes) : path_(path), mistakes_(mistakes) {}

  void broken(std::string_view field, const Json& value, std::string_view rule) {
    broken(field, brief_json(value), rule);
  }
  // The same of a value that the parameters do not have as it was given.
  void broken(std::string_view field, const std::string& is, std::string_view rule) {
    const std::string place = join_path(path_, field);
    mistakes_.check(place, Status(Code::kInvalidConfig, fmt::format("{} is {}, but {}", place, is, rule)));
  }

 private:
  const std::string& path_;
  Mistakes& mistakes_;
};

}  // namespace hstujit
