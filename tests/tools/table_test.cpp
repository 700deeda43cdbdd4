#include "tools/hstujit/table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "compiler/support/text.h"
#include "tools/hstujit/progress.h"
#include "tools/hstujit/terminal.h"

namespace hstujit {
namespace {

TEST(Table, AlignsColumnsByDisplayWidth) {
  Table table({{"name"}, {"time [us]", Align::kRight}, {"note"}});
  table.add({"rank-256", "93.5", "µs are one column"});
  table.add({"x", "1204.0"});
  EXPECT_EQ(table.render(false, true),
            "name      time [us]  note\n"
            "--------  ---------  -----------------\n"
            "rank-256       93.5  µs are one column\n"
            "x            1204.0\n");
}

TEST(Table, LeavesOutColumnsThatNothingUses) {
  Table table({{"name"}, {"rejected"}, {"time [us]", Align::kRight}});
  table.add({"a", "", "1"});
  table.add({"b", "", "22"});
  EXPECT_EQ(table.render(false, true), "name  time [us]\n----  ---------\na             1\nb            22\n");
}

TEST(Table, ColourDoesNotMoveColumns) {
  Table table({{"outcome"}, {"n", Align::kRight}});
  table.add({Cell("hit", Tone::kGood), "1"});
  EXPECT_EQ(table.render(true, true),
            "outcome  n\n"
            "\033[2m-------\033[0m  \033[2m-\033[0m\n"
            "\033[32mhit\033[0m      1\n");
}

TEST(Table, FitsUnlessItIsWide) {
  Table table({{"name"}, {"config"}, {"note", Align::kLeft, Show::kWide}, {"n", Align::kRight}}, 2);
  table.add({"short", std::string(200, 'c'), "more", "12345"});
  const std::string page = table.render(false, false);
  EXPECT_EQ(page.find("note"), std::string::npos);
  EXPECT_NE(page.find("ccc…  12345\n"), std::string::npos) << "numbers are never cut";
  for (const std::string& line : split(page, '\n')) {
    EXPECT_LE(display_width(line), kTableWidth);
    if (!line.empty()) {
      EXPECT_TRUE(line.starts_with("  ") && line[2] != ' ') << "headers stand above their columns";
    }
  }
  const std::string wide = table.render(false, true);
  EXPECT_NE(wide.find(std::string(200, 'c') + "  more  12345\n"), std::string::npos);
}

// All steps of a program read the same.
TEST(Table, OfAStepWithALongNameTheNameIsCut) {
  Table table({{"name"}, {"more"}});
  for (const char* step : {"layer_norm", "addmm"}) table.add({std::string(60, 'x') + "/" + step, std::string(90, 'y')});
  table.add({"short", ""});
  const std::string page = table.render(false, false);
  EXPECT_NE(page.find("…/layer_norm  y"), std::string::npos) << page;
  EXPECT_NE(page.find("…/addmm  y"), std::string::npos) << page;
  EXPECT_NE(page.find("x…/addmm"), std::string::npos) << page;
}

TEST(Table, WhatIsTooWideGoesOnInTheNextLine) {
  Table table({{"kernel"}, {"n", Align::kRight}});
  const std::string word(45, 'k');
  table.add({word + " " + word + " tail=1", "1"});
  table.add({"short", "2"});
  EXPECT_EQ(table.render(false, false), "kernel" + std::string(93, ' ') + "n\n" + std::string(97, '-') + "  -\n" +
                                            word + " " + word + "        1\n" + "tail=1\n" + "short" +
                                            std::string(94, ' ') + "2\n");
}

TEST(Table, CellsAreMadePrintable) {
  Table table({{"name"}, {"n", Align::kRight}});
  table.add({"\x1b[1m\xc2\x9b\xff\n", "1"});
  EXPECT_EQ(table.render(false, true), "name                 n\n-------------------  -\n\\x1b[1m\\u009b\\xff\\n  1\n");
  Fields fields;
  fields.add("a\x1b", "b\n");
  EXPECT_EQ(fields.render(false), "a\\x1b  b\\n\n");
}

// A file of a cache may hold megabytes in the place of a version, and a table pads every row to its longest text.
TEST(Table, NoTextIsLongerThanAPathMayBe) {
  const std::string longest(4096, 'p'), longer(1 << 20, 'x');
  Table table({{"name"}});
  table.add({longest});
  table.add({longer});
  EXPECT_LE(table.render(false, true).size(), 4u * 4200);
  EXPECT_NE(table.render(false, true).find(longest + "\n"), std::string::npos);
  Fields fields;
  fields.add("name", longer);
  EXPECT_LE(fields.render(false).size(), 4200u);
}

TEST(Table, WithoutRowsPrintsNothingButLineEnds) { EXPECT_EQ(Table({{"name"}}).render(false, true), "\n\n"); }

TEST(Fields, LongValuesGoOnBelowWhereTheyBegin) {
  Fields fields;
  std::string value = "begin";
  while (value.size() < 200) value += " word";
  fields.add("name", Cell(value + " " + std::string(120, 'x') + " end"));
  const std::string text = fields.render(false);
  size_t lines = 0;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1, ++lines) {
    end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    EXPECT_EQ(line.substr(0, 6), lines == 0 ? "name  " : "      ") << text;
    EXPECT_TRUE(line.size() <= 100 || line == "      " + std::string(120, 'x')) << text;
  }
  EXPECT_EQ(lines, 5u) << text;
}

TEST(Fields, AWordThatOnlyItsPlaceMakesTooLongIsOnALineOfItsOwn) {
  Fields fields;
  const std::string word(96, 'w');
  fields.add("  kernel", word);
  fields.add("  why", "short");
  fields.add("  path", word + "12345");  // longer than any line
  EXPECT_EQ(fields.render(false), "  kernel\n    " + word + "\n  why     short\n  path    " + word + "12345\n");
}

TEST(Paragraph, IsBrokenAtBlanksAndIndented) {
  EXPECT_EQ(paragraph("short", 4), "short\n");
  const std::string word(60, 'w');
  EXPECT_EQ(paragraph("  first " + word + " " + word, 4), "  first " + word + "\n    " + word + "\n");
}

TEST(Fields, ValuesBeginInOneColumn) {
  Fields fields;
  fields.add("a", "1");
  fields.add("long name", Cell("bad", Tone::kBad));
  EXPECT_EQ(fields.render(false), "a          1\nlong name  bad\n");
  EXPECT_EQ(fields.render(true), "a          1\nlong name  \033[31mbad\033[0m\n");
}

TEST(ProgressLine, ShowsBarCountAndName) {
  EXPECT_EQ(progress_line("prewarm", 1, 2, std::nullopt, "a forward 256", 80),
            "prewarm [============            ] 1/2 a forward 256");
  EXPECT_EQ(progress_line("prewarm", 1, 2, 40.4, "a forward 256", 80),
            "prewarm [============            ] 1/2, 40 s left: a forward 256");
  EXPECT_EQ(progress_line("prewarm", 0, 0, std::nullopt, "", 80), "prewarm [========================] 0/0 ");
}

TEST(TimeLeft, IsWhatTheRestTakesAtTheSamePace) {
  TimeLeft left;
  EXPECT_EQ(left.update(0, 4, 1), std::nullopt) << "nothing is known yet";
  EXPECT_EQ(left.update(1, 4, 10), 30.0);
  EXPECT_EQ(left.update(2, 4, 12), 12.0);
  EXPECT_EQ(left.update(4, 4, 20), std::nullopt) << "done";
}

TEST(TimeLeft, ACountThatBeginsAnewIsEstimatedAnew) {
  TimeLeft left;
  EXPECT_EQ(left.update(10, 10, 100), std::nullopt);
  EXPECT_EQ(left.update(1, 3, 105), 10.0) << "another total: since the last step of the count before";
  EXPECT_EQ(left.update(3, 3, 110), std::nullopt);
  EXPECT_EQ(left.update(1, 3, 112), 4.0) << "the same total again";
}

TEST(TimeLeft, IsWrittenWithNoMoreDigitsThanItHas) {
  EXPECT_EQ(time_left_text(0.2), "1 s");
  EXPECT_EQ(time_left_text(40.4), "40 s");
  EXPECT_EQ(time_left_text(89.4), "89 s");
  EXPECT_EQ(time_left_text(100), "2 min");
  EXPECT_EQ(time_left_text(59.6 * 60), "1 h 0 min");
  EXPECT_EQ(time_left_text(80 * 60), "1 h 20 min");
  EXPECT_EQ(time_left_text(1e9), "days");
}

TEST(ProgressLine, IsCutToTheWidth) {
  const std::string line = progress_line("tune", 3, 9, 12.0, "a very long name of a candidate", 40);
  EXPECT_EQ(display_width(line), 40u);
  EXPECT_TRUE(line.ends_with("…")) << line;
}

std::string written_by(bool terminal, Progress::Counts counts = Progress::Counts::kOne) {
  std::FILE* file = std::tmpfile();
  {
    Progress progress("run", counts, file, terminal, 60);
    Progress::callback(&progress, 1, 2, "first");
    Progress::callback(&progress, 2, 2, nullptr);
  }
  std::rewind(file);
  char text[512] = {};
  const size_t size = std::fread(text, 1, sizeof(text), file);
  std::fclose(file);
  return std::string(text, size);
}

TEST(Progress, PrintsLinesWhereThereIsNoTerminal) { EXPECT_EQ(written_by(false), "run 1/2 first\nrun 2/2 \n"); }

TEST(Progress, NamesAreMadePrintable) {
  EXPECT_EQ(progress_line("run", 0, 0, std::nullopt, "a\x1b[2J\n", 80),
            "run [========================] 0/0 a\\x1b[2J\\n");
}

TEST(Progress, RewritesOneLineOnATerminalAndRemovesIt) {
  const std::string text = written_by(true);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\033[K")) << text;
  EXPECT_NE(text.find("1/2, 1 s left: first"), std::string::npos) << text;
}

TEST(Progress, OfSeveralCountsNobodyKnowsTheEnd) {
  EXPECT_EQ(written_by(true, Progress::Counts::kSeveral).find("left"), std::string::npos);
}

TEST(Terminal, AFileIsNone) {
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(is_terminal(fileno(file)));
  EXPECT_FALSE(wants_colour(fileno(file)));
  EXPECT_EQ(terminal_width(fileno(file)), 80);
  std::fclose(file);
}

}  // namespace
}  // namespace hstujit
