// Aligned columns for people: a header with units, a rule below it, one line a row.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/hstujit/output.h"

namespace hstujit {

enum class Align { kLeft, kRight };
enum class Tone { kPlain, kGood, kBad, kFaint };
enum class Show { kAlways, kWide };  // kWide: in wide tables only

// Columns that a table takes at most where it is not wide: a terminal beside something else, a page, a message.
inline constexpr size_t kTableWidth = 100;

struct Column {
  std::string title;  // with the unit: "median [us]"
  Align align = Align::kLeft;
  Show show = Show::kAlways;
};

// A text from anywhere: it is made printable here.
struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;

  Cell(std::string_view text_, Tone tone_ = Tone::kPlain) : text(one_line(text_)), tone(tone_) {}  // NOLINT
  Cell(const std::string& text_) : Cell(std::string_view(text_)) {}                                // NOLINT
  Cell(const char* text_) : Cell(std::string_view(text_)) {}                                       // NOLINT
};

class Table {
 public:
  // Every line begins with `indent` blanks.
  explicit Table(std::vector<Column> columns, size_t indent = 0) : columns_(std::move(columns)), indent_(indent) {}

  // Missing cells at the end are empty.
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  // Ends with a newline; no line ends with a blank. Columns that are empty in every row are left out. A table that is
  // not wide has no columns of Show::kWide, and takes at most kTableWidth: the widest of its texts go on in the next
  // line, broken at blanks, and a word that is too long is cut, NAME/STEP before the step; numbers never are.
  std::string render(bool colour, bool wide) const;
  void print(bool wide) const;  // to standard output

 private:
  bool is_used(size_t column) const;
  size_t width(size_t column) const;
  std::vector<size_t> widths(const std::vector<size_t>& shown, bool wide) const;
  std::vector<Column> columns_;
  size_t indent_;
  std::vector<std::vector<Cell>> rows_;
};

// "name: value" lines whose values begin in one column; a word that is too long for it is on a line of its own.
class Fields {
 public:
  void add(std::string_view name, Cell value) { rows_.emplace_back(one_line(name), std::move(value)); }
  std::string render(bool colour) const;
  void print() const;

 private:
  std::vector<std::pair<std::string, Cell>> rows_;
};

// Columns that a text takes on a terminal, for the letters that reports have: one per code point.
size_t display_width(std::string_view text);

// Lines of at most kTableWidth, broken at blanks, that begin with `indent` blanks from the second one on; the last one
// ends with a newline, too.
std::string paragraph(const std::string& text, size_t indent);

// Prints as print() does, as a paragraph whose further lines are indented.
template <typename... Arguments>
void print_paragraph(fmt::format_string<const Shown<Arguments>&...> format, const Arguments&... arguments) {
  write_text(stdout, paragraph(format_printable<Arguments...>(format, arguments...), 2));
}

// At most `width` columns of `text`, ended by an ellipsis when it is cut.
std::string cut(const std::string& text, size_t width);

}  // namespace hstujit
