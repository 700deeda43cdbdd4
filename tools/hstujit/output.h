// All that the program writes to its standard streams passes here: escaped, and never a reason to end.
//
// Reports, paths, names and variables come from files, caches, devices and users. A terminal must not act on them, so
// every text that is put into a sentence or a table is made printable (compiler/support/text.h) on its way. A stream
// that is full or closed takes no more, and the program says so at its end (close_output).
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "compiler/support/status.h"
#include "compiler/support/text.h"

namespace hstujit {

// As it is: what has been made printable already, or is the program's own.
void write_text(std::FILE* stream, std::string_view text);

template <typename T>
inline constexpr bool kIsText = std::is_convertible_v<const T&, std::string_view>;

template <typename T>
using Shown = std::conditional_t<kIsText<T>, std::string, T>;

// Text from anywhere on one line. As long as a path may be: a file of a cache may hold texts of megabytes.
inline std::string one_line(std::string_view text) {
  constexpr size_t kLongest = 4096;
  return printable(text, kLongest);
}

// fmt::format, with every text among the arguments on one printable line.
template <typename... Arguments>
std::string format_printable(fmt::format_string<const Shown<Arguments>&...> format, const Arguments&... arguments) {
  [[maybe_unused]] const auto shown = [](const auto& argument) -> decltype(auto) {
    if constexpr (kIsText<std::decay_t<decltype(argument)>>) {
      return one_line(argument);
    } else {
      return (argument);
    }
  };
  return fmt::vformat(format, fmt::make_format_args(static_cast<const Shown<Arguments>&>(shown(arguments))...));
}

// To standard output.
template <typename... Arguments>
void print(fmt::format_string<const Shown<Arguments>&...> format, const Arguments&... arguments) {
  write_text(stdout, format_printable<Arguments...>(format, arguments...));
}

// A JSON document, with a line end behind it, to standard output; its value stays.
void print_json(std::string_view json);

// "hstujit: <sentence>" to standard error, below what was printed before. Of a sentence of several lines, such as
// a compiler's, those after the first are indented.
void print_error(std::string_view sentence);

// Writes what is left and closes standard output. kIo when some of what was written to either stream is lost.
Status close_output();

}  // namespace hstujit
