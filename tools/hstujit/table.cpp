#include "tools/hstujit/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tools/hstujit/output.h"
#include "tools/hstujit/terminal.h"

namespace hstujit {

namespace {

constexpr std::string_view kGap = "  ";
constexpr size_t kWordIndent = 4;  // of a long word below its field's name

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

// As cut(), but of a program's step, NAME/STEP, the step stays: all of them have the same name.
std::string cut_cell(const std::string& text, size_t width) {
  const size_t slash = text.rfind('/');
  if (slash == std::string::npos || display_width(text) <= width) return cut(text, width);
  const size_t step = display_width(text.substr(slash));
  if (step + 2 > width) return cut(text, width);
  return cut(text.substr(0, slash), width - step) + text.substr(slash);
}

std::string padded(const Cell& cell, Align align, size_t width, bool colour) {
  const std::string shown = cut_cell(cell.text, width);
  const std::string blanks(width - display_width(shown), ' ');
  const std::string text = painted(shown, cell.tone, colour);
  return align == Align::kRight ? blanks + text : text + blanks;
}

void end_line(std::string& text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  text += '\n';
}

// Lines of at most `width` columns, broken at blanks; a word that is longer has a line of its own.
std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  size_t used = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const size_t columns = display_width(word);
    if (begin > 0 && used + 1 + columns > width) {
      lines.push_back(word);
      used = columns;
    } else {
      if (begin > 0) lines.back() += ' ';
      lines.back() += word;
      used += columns + (begin > 0 ? 1 : 0);
    }
    begin = end + 1;
  }
  return lines;
}

}  // namespace

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string paragraph(const std::string& text, size_t indent) {
  std::string lines;
  for (const std::string& line : wrapped(text, kTableWidth - indent)) {
    if (!lines.empty()) lines.append(indent, ' ');
    lines += line;
    end_line(lines);
  }
  return lines;
}

std::string cut(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  if (width == 0) return "";
  std::string shown;
  size_t columns = 0;
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (begins && ++columns == width) break;
    shown += c;
  }
  return shown + "…";
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

std::vector<size_t> Table::widths(const std::vector<size_t>& shown, bool wide) const {
  std::vector<size_t> widths;
  size_t total = indent_;
  for (const size_t column : shown) {
    widths.push_back(width(column));
    total += widths.back() + kGap.size();
  }
  while (!wide && total > kTableWidth + kGap.size()) {
    size_t* widest = nullptr;
    for (size_t i = 0; i < shown.size(); ++i) {
      const Column& column = columns_[shown[i]];
      const bool can_be_cut = column.align == Align::kLeft && widths[i] > display_width(column.title);
      if (can_be_cut && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    }
    if (widest == nullptr) break;
    --*widest;
    --total;
  }
  return widths;
}

std::string Table::render(bool colour, bool wide) const {
  std::vector<size_t> shown;
  for (size_t column = 0; column < columns_.size(); ++column) {
    if (is_used(column) && (wide || columns_[column].show == Show::kAlways)) shown.push_back(column);
  }
  const std::vector<size_t> width = widths(shown, wide);
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line(indent_, ' ');
    for (size_t i = 0; i < shown.size(); ++i) {
      if (i > 0) line += kGap;
      line += padded(cell_of(i), columns_[shown[i]].align, width[i], colour);
    }
    end_line(line);
    text += line;
  };
  const auto add_row = [&](const auto& cell_of) {
    std::vector<std::vector<std::string>> parts;
    size_t height = 1;
    for (size_t i = 0; i < shown.size(); ++i) {
      parts.push_back(wrapped(cell_of(i).text, width[i]));
      height = std::max(height, parts.back().size());
    }
    for (size_t k = 0; k < height; ++k) {
      add_line([&](size_t i) { return Cell(k < parts[i].size() ? parts[i][k] : "", cell_of(i).tone); });
    }
  };
  add_line([&](size_t i) { return Cell(columns_[shown[i]].title); });
  add_line([&](size_t i) { return Cell(std::string(width[i], '-'), Tone::kFaint); });
  for (const auto& row : rows_) {
    add_row([&](size_t i) { return shown[i] < row.size() ? row[shown[i]] : Cell(""); });
  }
  return text;
}

void Table::print(bool wide) const { write_text(stdout, render(wants_colour(STDOUT_FILENO), wide)); }

std::string Fields::render(bool colour) const {
  size_t width = 0;
  for (const auto& [name, value] : rows_) width = std::max(width, display_width(name));
  std::string text;
  for (const auto& [name, value] : rows_) {
    std::string line = padded(Cell(name), Align::kLeft, width, false);
    line += kGap;
    const size_t indent = display_width(line);
    for (const std::string& part : wrapped(value.text, kTableWidth - std::min(indent, kTableWidth / 2))) {
      // A word that only its place makes too long for a line.
      const size_t columns = display_width(part);
      if (indent + columns > kTableWidth && kWordIndent + columns <= kTableWidth) {
        if (line.find_first_not_of(' ') != std::string::npos) {
          end_line(line);
          text += line;
        }
        line.assign(kWordIndent, ' ');
      }
      line += painted(part, value.tone, colour);
      end_line(line);
      text += line;
      line.assign(indent, ' ');
    }
  }
  return text;
}

void Fields::print() const { write_text(stdout, render(wants_colour(STDOUT_FILENO))); }

}  // namespace hstujit
