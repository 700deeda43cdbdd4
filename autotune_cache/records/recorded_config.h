// The config of a kernel as records and choices hold it: JSON text in one form, an object in their files.
//
// The form has members in the order of their names, no blanks, and whole numbers without a point. So two configs of the
// same fields and values are equal, whatever text they were made from. A record can hold the parameters of any
// operator, of older and newer libraries, too: what fields there are does not count.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "compiler/support/json.h"
#include "compiler/support/status.h"

namespace hstujit {

class RecordedConfig {
 public:
  RecordedConfig() = default;  // none
  // A text that is not JSON stays as it is, and is equal to itself alone. Throws std::bad_alloc: a config that there is
  // no memory for is not another one.
  template <typename Text, typename = std::enable_if_t<std::is_convertible_v<const Text&, std::string_view>>>
  RecordedConfig(const Text& text) : text_(canonical(text)) {}

  // Member "config" of `object`, in the names of today (compiler/support/config_aliases.h); none where there is no such
  // member, or it is no object.
  static RecordedConfig member_of(const Json& object);

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  // kInvalidArgument when the text is no JSON object.
  Result<Json> to_json() const;

  friend bool operator==(const RecordedConfig&, const RecordedConfig&) = default;
  friend auto operator<=>(const RecordedConfig&, const RecordedConfig&) = default;

 private:
  static std::string canonical(std::string_view text);

  std::string text_;
};

}  // namespace hstujit
