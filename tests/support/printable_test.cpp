#include "compiler/support/printable.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler/support/text.h"

namespace hstujit {
namespace {

// ESC, C1 as a byte and as UTF-8, DEL, an override of direction, a separator of lines, no UTF-8.
constexpr const char* kHostile = "\x1b[31m \x9b \xc2\x9b \x7f \xe2\x80\xae \xe2\x80\xa8 \xff";
constexpr const char* kEscaped = "\\x1b[31m \\x9b \\u009b \\x7f \\u202e \\u2028 \\xff";

TEST(Printable, EscapesWhatTerminalsActOn) {
  EXPECT_EQ(printable(kHostile), kEscaped);
  EXPECT_EQ(printable(kEscaped), kEscaped) << "twice is the same as once";
  EXPECT_EQ(printable("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(printable("µs, 漢字, 🙂, é"), "µs, 漢字, 🙂, é");
  EXPECT_EQ(quote("\xe2\x80\xae\""), "\"\\u202e\\\"\"");
}

TEST(Printable, EveryControlAndDirectionIsEscaped) {
  for (char c = 0; c < 0x20; ++c) EXPECT_NE(printable(std::string(1, c)), std::string(1, c));
  for (int low = 0x80; low < 0xa0; ++low) {
    const std::string c1 = {'\xc2', static_cast<char>(low)};
    EXPECT_NE(printable(c1), c1);
  }
  for (const char* mark : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066",
                           "\u2067", "\u2068", "\u2069", "\u2029"}) {
    EXPECT_NE(printable(mark), mark);
  }
}

TEST(Printable, LinesKeepTheirEnds) {
  EXPECT_EQ(printable_lines("a\n\tb\x1b\n"), "a\n\tb\\x1b\n");
  EXPECT_EQ(printable_lines(""), "");
  EXPECT_EQ(printable_lines(std::string(10000, 'a')).size(), 10000u);
}

TEST(Printable, JsonKeepsItsValue) {
  const nlohmann::json value = {{"a\x7f", "\xc2\x9b\xe2\x80\xae\x1b\n µs \U000e0041 \\"}};
  for (const int indent : {-1, 2}) {
    const std::string text = printable_json(value.dump(indent));
    EXPECT_EQ(nlohmann::json::parse(text), value);
    EXPECT_EQ(printable_lines(text), text);
  }
  EXPECT_EQ(printable_json("\"\xff\""), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace hstujit
