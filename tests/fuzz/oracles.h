// Checks and common parts of the targets.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit::fuzz {

using Json = nlohmann::ordered_json;

// Stack of the thread that parses. A server may call from a thread of its own, whose stack is smaller than a program's.
// Code that is not optimised needs several times as much, above all under a sanitizer.
#ifdef __OPTIMIZE__
inline constexpr size_t kStack = size_t{512} << 10;
#else
inline constexpr size_t kStack = size_t{4} << 20;
#endif

// From now on the stack of the main thread grows no further than kStack.
void limit_stack();

// Ends the process with the sentence when it does not hold.
void expect(bool holds, std::string_view promise);

// A failure's message is a sentence that a log can take, or a few of them, each on a line: not empty, under 4 KB,
// UTF-8, without control characters.
void expect_sentence(const Status& status);

// expect_sentence of a failure. Returns whether there is a value.
template <typename T>
bool parsed(const Result<T>& result) {
  if (!result.ok()) expect_sentence(result.status());
  return result.ok();
}

// The object that the text is, which is to be given a checksum; nothing when it is none or nested deeper than the
// project's own writers could take.
std::optional<Json> object_of(std::string_view text);

// The checked file of that format with these members.
std::string checked_file(Json object, std::string_view format);

// The tar archive with the right checksum in each header.
std::string with_header_checksums(std::string tar);

}  // namespace hstujit::fuzz
