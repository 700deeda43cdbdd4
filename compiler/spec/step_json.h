// The JSON of an operator that is a step of another one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "compiler/support/json.h"

namespace hstujit {

// A flag, a number or a text. A list of these takes a few instructions an entry, one of Json some forty.
class StepValue {
 public:
  StepValue(bool value) : kind_(Kind::kFlag), number_(value ? 1 : 0) {}
  StepValue(int value) : kind_(Kind::kNumber), number_(value) {}
  StepValue(int64_t value) : kind_(Kind::kNumber), number_(value) {}
  StepValue(std::string_view value) : kind_(Kind::kText), text_(value) {}
  StepValue(const std::string& value) : StepValue(std::string_view(value)) {}
  StepValue(const char* value) : StepValue(std::string_view(value)) {}

  Json json() const;

 private:
  enum class Kind : uint8_t { kFlag, kNumber, kText };
  Kind kind_;
  int64_t number_ = 0;
  std::string_view text_ = {};
};

struct StepField {
  std::string_view name;
  StepValue value;
};

// {"op": op, name: value, ...}
Json step_json(std::string_view op, std::initializer_list<StepField> fields);

}  // namespace hstujit
