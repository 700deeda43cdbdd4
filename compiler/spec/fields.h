// One field list per value type gives equality, JSON, hashing, printing and emission.
//
// A value type T opts in with
//     static constexpr auto fields() { return std::make_tuple(field("heads", &T::heads, "doc"), ...); }
// and everything else walks that tuple, so a field is written down once.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace hstujit {

// What a field accepts, whatever its type: for validation, error sentences and the JSON schema.
struct FieldRules {
  std::string_view name;  // as in JSON and in the generated source
  std::string_view doc;   // one line for the schema and for error messages
  int64_t min = 0;        // inclusive bounds for numbers; ignored for other types
  int64_t max = std::numeric_limits<int32_t>::max();
  // Separated by spaces: what an enumeration, a text or an integer may be; empty: every spelling of its type.
  std::string_view choices = {};
  bool optional = false;  // JSON has neither an empty text nor false nor 0, which the field may be
  // Separated by spaces, of a text with choices: the names of expressions that it may be in place of one.
  std::string_view expression_names = {};
  bool keeps_registers = false;  // of a kernel config: its kernel has as many registers, whatever the value is
};

template <typename Owner, typename Value>
struct Field : FieldRules {
  Value Owner::* member;

  constexpr Field one_of(std::string_view allowed) const {
    Field copy = *this;
    copy.choices = allowed;
    return copy;
  }
  constexpr Field or_expression_of(std::string_view names) const {
    Field copy = *this;
    copy.expression_names = names;
    return copy;
  }
  constexpr Field or_none() const {
    Field copy = *this;
    copy.optional = true;
    return copy;
  }
  constexpr Field keeping_registers() const {
    Field copy = *this;
    copy.keeps_registers = true;
    return copy;
  }
};

template <typename Owner, typename Value>
constexpr Field<Owner, Value> field(std::string_view name, Value Owner::* member, std::string_view doc, int64_t min = 0,
                                    int64_t max = std::numeric_limits<int32_t>::max()) {
  return {{name, doc, min, max, {}, false, {}, false}, member};
}

// Calls visit(field, value) for each field of `object`, in declaration order.
template <typename T, typename Visitor>
void for_each_field(T& object, Visitor&& visit) {
  std::apply([&](const auto&... f) { (visit(f, object.*(f.member)), ...); }, std::remove_const_t<T>::fields());
}

}  // namespace hstujit
