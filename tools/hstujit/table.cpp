#include "tools/hstujit/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tools/hstujit/terminal.h"

namespace hstujit {

namespace {

constexpr std::string_view kGap = "  ";

std::string_view escape(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kGood:
      return "\033[32m";
    case Tone::kBad:
      return "\033[31m";
    case Tone::kFaint:
      return "\033[2m";
  }
  return "";
}

std::string painted(const std::string& text, Tone tone, bool colour) {
  if (!colour || tone == Tone::kPlain || text.empty()) return text;
  return fmt::format("{}{}\033[0m", escape(tone), text);
}

std::string padded(const Cell& cell, Align align, size_t width, bool colour) {
  const size_t taken = display_width(cell.text);
  const std::string blanks(width - std::min(width, taken), ' ');
  const std::string text = painted(cell.text, cell.tone, colour);
  return align == Align::kRight ? blanks + text : text + blanks;
}

void end_line(std::string& text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  text += '\n';
}

}  // namespace

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool Table::is_used(size_t column) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](const auto& row) { return column < row.size() && !row[column].text.empty(); });
}

size_t Table::width(size_t column) const {
  size_t width = display_width(columns_[column].title);
  for (const auto& row : rows_) {
    if (column < row.size()) width = std::max(width, display_width(row[column].text));
  }
  return width;
}

std::string Table::render(bool colour) const {
  std::vector<size_t> shown;
  for (size_t column = 0; column < columns_.size(); ++column) {
    if (is_used(column)) shown.push_back(column);
  }
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (const size_t column : shown) {
      if (!line.empty()) line += kGap;
      line += padded(cell_of(column), columns_[column].align, width(column), colour);
    }
    end_line(line);
    text += line;
  };
  add_line([&](size_t column) { return Cell(columns_[column].title); });
  add_line([&](size_t column) { return Cell(std::string(width(column), '-'), Tone::kFaint); });
  for (const auto& row : rows_) {
    add_line([&](size_t column) { return column < row.size() ? row[column] : Cell(""); });
  }
  return text;
}

void Table::print() const { fmt::print("{}", render(wants_colour(STDOUT_FILENO))); }

std::string Fields::render(bool colour) const {
  size_t width = 0;
  for (const auto& [name, value] : rows_) width = std::max(width, display_width(name));
  std::string text;
  for (const auto& [name, value] : rows_) {
    std::string line = padded(Cell(name), Align::kLeft, width, false);
    line += kGap;
    line += painted(value.text, value.tone, colour);
    end_line(line);
    text += line;
  }
  return text;
}

void Fields::print() const { fmt::print("{}", render(wants_colour(STDOUT_FILENO))); }

}  // namespace hstujit
