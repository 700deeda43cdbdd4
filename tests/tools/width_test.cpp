// Lines of reports take kTableWidth columns at most, unless one word is longer: of every command that works without a
// GPU, on every config that the repository shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "tests/paths.h"
#include "tests/support/whole_file.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

constexpr size_t kWidth = 100;

// One per code point.
size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void expect_narrow(const std::vector<std::string>& arguments) {
  const Outcome outcome = hstujit_tool(arguments);
  EXPECT_NE(outcome.out, "") << outcome.err;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    const bool one_word = line.find(" ", line.find_first_not_of(" ")) == std::string::npos;
    if (one_word) continue;
    EXPECT_LE(columns(line), kWidth) << testing::PrintToString(arguments) << "\n" << line;
  }
}

// The config in docs/using.md, and those of examples/.
std::vector<std::string> shown_configs(const Scratch& scratch) {
  const std::string page = whole_file(source_path("/docs/using.md")).value();
  const std::string mark = "```json\n";
  const size_t begin = page.find(mark) + mark.size();
  std::vector<std::string> configs = {scratch.file("model.json", page.substr(begin, page.find("```", begin) - begin))};
  for (const auto& entry : std::filesystem::directory_iterator(source_path("/examples/configs")))
    configs.push_back(entry.path());
  return configs;
}

TEST(Width, ReportsOfAllConfigsAreNarrow) {
  const Scratch scratch;
  for (const std::string& config : shown_configs(scratch)) {
    const auto narrow = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), {"--config", config, "--cache-dir", scratch.cache()});
      expect_narrow(arguments);
    };
    narrow({"check", "--arch", "H200"});
    narrow({"prewarm", "--check", "--arch", "H200"});
    narrow({"explain", "--arch", "H200"});
    narrow({"explain", "--arch", "A100"});
    narrow({"run", "--backend", "host", "--check", "--max-rows", "64"});
  }
}

// The subcommands that the help of a command lists, at the beginning of lines.
std::vector<std::string> listed_commands(const std::string& help) {
  std::vector<std::string> commands;
  const size_t list = help.find("\nSubcommands:\n");
  if (list == std::string::npos) return commands;
  std::istringstream lines(help.substr(list));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ") && line[2] != ' ') commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return commands;
}

// Checks a command and all below it; their names, "cache ls".
std::vector<std::string> expect_narrow_help(const std::vector<std::string>& command, const std::string& name) {
  std::vector<std::string> arguments = command;
  arguments.emplace_back("--help");
  expect_narrow(arguments);
  std::vector<std::string> names = {name};
  for (const std::string& listed : listed_commands(hstujit_tool(arguments).out)) {
    arguments.back() = listed;
    const auto below = expect_narrow_help(arguments, name.empty() ? listed : name + " " + listed);
    names.insert(names.end(), below.begin(), below.end());
  }
  return names;
}

TEST(Width, HelpIsNarrow) {
  EXPECT_THAT(expect_narrow_help({}, ""), testing::IsSupersetOf({"run", "manual", "cache ls"}));
}

TEST(Explain, HeadsOfKeysDiffer) {
  const std::string out =
      hstujit_tool({"explain", "--config", source_path("/examples/configs/ml100k.json"), "--arch", "H200"}).out;
  EXPECT_THAT(out, testing::HasSubstr("\nml-100k-d64 forward 1024\n"));
  EXPECT_THAT(out, testing::HasSubstr("\nml-100k-d64 forward 1024 short\n"));
}

}  // namespace
}  // namespace hstujit
