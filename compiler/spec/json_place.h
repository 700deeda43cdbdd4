// Where the values of a JSON text stand: the parser tells only their content.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace hstujit {

// "ops[2]" and "heads" -> "ops[2].heads"; no dot when `path` is empty. A name that is no plain word is quoted,
// "ops[2][\"a b\"]", so that paths are one line and tell values apart.
std::string join_path(const std::string& path, std::string_view name);

// "line:column" of a byte, both from 1. Columns are bytes.
std::string line_and_column(std::string_view text, size_t byte);

// The bytes that a value and the name before it begin at. An element of a list has no name: both are the value's.
struct JsonPlace {
  size_t name = 0;
  size_t value = 0;
};

// The places of some values of a text, found in one pass over it.
class JsonPlaces {
 public:
  // `text` is one that parse_json_text has accepted, comments and all. (Any other is read without harm.)
  JsonPlaces(std::string_view text, const std::set<std::string>& paths);

  // Finds the place of a value, or, where the text lacks it, of the innermost one around it.
  JsonPlace of(std::string_view path) const;

  // The values that are wanted, and those around them, by the steps of their paths: "ops", "[2]" and "heads". A name
  // may have megabytes, and is kept once for all that is below it.
  struct Node {
    std::map<std::string, Node, std::less<>> inner;
    std::optional<JsonPlace> place;  // none where the text lacks it
  };

 private:
  Node root_;
};

}  // namespace hstujit
