// Aligned columns for people: a header with units, a rule below it, one line a row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hstujit {

enum class Align { kLeft, kRight };
enum class Tone { kPlain, kGood, kBad, kFaint };

struct Column {
  std::string title;  // with the unit: "median [us]"
  Align align = Align::kLeft;
};

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;

  Cell(std::string text_, Tone tone_ = Tone::kPlain) : text(std::move(text_)), tone(tone_) {}  // NOLINT
  Cell(const char* text_) : text(text_) {}                                                     // NOLINT
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells at the end are empty.
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  // Ends with a newline; no line ends with a blank. Columns that are empty in every row are left out.
  std::string render(bool colour) const;
  void print() const;  // to standard output

 private:
  bool is_used(size_t column) const;
  size_t width(size_t column) const;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// "name: value" lines whose values begin in one column.
class Fields {
 public:
  void add(std::string name, Cell value) { rows_.emplace_back(std::move(name), std::move(value)); }
  std::string render(bool colour) const;
  void print() const;

 private:
  std::vector<std::pair<std::string, Cell>> rows_;
};

// Columns that a text takes on a terminal, for the letters that reports have: one per code point.
size_t display_width(std::string_view text);

}  // namespace hstujit
