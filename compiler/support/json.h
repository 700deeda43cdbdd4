// JSON text to a value and back. Nothing else in the project parses or writes JSON, which cmake/check_reads.cmake
// sees to: text may come from anybody, and a value of it shall be safe to copy, compare, write and destroy.
#pragma once

#include <cstdint>
// An assertion of the library's would end a process in a build with assertions where memory ran out: of a value that
// was to become a list and could not, its invariants do not hold.
#define JSON_ASSERT(condition) static_cast<void>(0)
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "compiler/support/status.h"

// How a value goes: part by part, by recursion, and without taking memory. The library's own way collects the parts in
// a list first, so that no depth costs stack; where memory has run out, that ends the process, since destructors throw
// nothing. Values of this project are never deep (kMaxReportDepth). Whoever has values includes this header and not the
// library's, so that all of them go in this way; cmake/check_reads.cmake sees to that, too.
namespace hstujit {

template <typename Value>
void end_json_value(Value& value, nlohmann::detail::value_t type) {
  using Type = nlohmann::detail::value_t;
  // One that was to become a list, an object or a text, and had no memory to, holds a null pointer.
  if (type == Type::object) {
    delete value.object;
  } else if (type == Type::array) {
    delete value.array;
  } else if (type == Type::string) {
    delete value.string;
  } else if (type == Type::binary) {
    delete value.binary;
  }
}

}  // namespace hstujit

namespace nlohmann {

template <>
inline void ordered_json::json_value::destroy(value_t type) {
  hstujit::end_json_value(*this, type);
}

template <>
inline void json::json_value::destroy(value_t type) {
  hstujit::end_json_value(*this, type);
}

}  // namespace nlohmann

namespace hstujit {

using Json = nlohmann::ordered_json;

// For comparing: equal whatever order members came in. No other types of values are used, since these go as is said
// above.
using SortedJson = nlohmann::json;

// How deep lists and objects of a text may lie in each other. Values are copied, compared and written by recursion, so
// an unbounded depth would be as much stack. Nothing that the project reads or writes has more than ten levels.
inline constexpr int kMaxJsonDepth = 64;
// For what this library has made out of such texts, a report or a message to a worker: they lie in it.
inline constexpr int kMaxReportDepth = 2 * kMaxJsonDepth;

// How much a text may hold, so that a hostile one costs a second and no more: values in all, names in one object, and
// blanks and characters of comments in one place.
inline constexpr size_t kMaxJsonValues = size_t{1} << 22;
inline constexpr size_t kMaxJsonNames = size_t{1} << 17;
inline constexpr size_t kMaxJsonBlanks = size_t{1} << 16;

struct JsonRules {
  bool comments = false;  // whether // and /* */ are allowed
  int depth = kMaxJsonDepth;
};

// Parses a text. Every integer of the result fits into int64_t: a larger one is a number with a fraction, as one with
// more digits yet would be, and so nothing that asks for an integer takes it. Every text is UTF-8, and no name stands
// twice in one object.
//
// Failure: kInvalidConfig with "line:column: <what is wrong>", both from 1, or kOutOfMemory.
Result<Json> parse_json(std::string_view text, const JsonRules& rules = {});

// For texts that are this library's own, or whose mistakes make no difference: null for what is no JSON. Throws
// std::bad_alloc, since null would be another answer.
Json json_or_null(std::string_view text, const JsonRules& rules = {});

// On one line, or indented for people. Bytes that are no UTF-8, of a path or of a driver's name, are replaced.
std::string dump_json(const Json& json, int indent = -1);

// One line, shortened when long, safe for any bytes: for messages. Takes no longer for a value of millions.
std::string brief_json(const Json& json);

// The beginning of a value, all of a short one: what brief_json() shows of both is the same.
Json brief_part(const Json& json);

// Members of an object by type; the fallback when there is no object, no such member, or one of another type.
std::string text_member(const Json& object, const char* name, std::string_view fallback = {});
int64_t integer_member(const Json& object, const char* name, int64_t fallback);
double number_member(const Json& object, const char* name, double fallback);

}  // namespace hstujit
