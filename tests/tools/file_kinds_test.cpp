// Files of another kind: none is replaced by what a command writes, and none is taken for what a command reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "compiler/support/files.h"
#include "tests/support/whole_file.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Outputs, AFileOfAnotherKindIsNotReplaced) {
  const Scratch scratch;
  const std::string config = scratch.config(), words = "what somebody wrote";
  for (const auto& [command, kind] :
       {std::pair(std::vector<std::string>{"freeze", "--config", config, "--arch", "sm_90a", "-o"},
                  "file of hstujit freeze"),
        {{"report", "--config", config, "--arch", "sm_90a", "-o"}, "page of hstujit report"},
        {{"bench", "--config", config, "--out"}, "report of hstujit bench"},
        {{"cache", "export"}, "bundle"}}) {
    const std::string file = scratch.file("file", words);
    std::vector<std::string> arguments = command;
    arguments.push_back(file);
    const Outcome refused = hstujit_tool(arguments);
    EXPECT_EQ(refused.code, 2) << command[0];
    EXPECT_THAT(refused.err, HasSubstr("cannot write \"" + file + "\": the existing file is not a " + kind + "; "));
    EXPECT_EQ(*whole_file(file), words);
  }
  const std::vector<std::string> freeze = {
      "freeze",      "--config",     config, "--arch", "sm_90a", "-o", scratch.file("choices", ""),
      "--cache-dir", scratch.cache()};
  EXPECT_EQ(hstujit_tool(freeze).code, 0) << "an empty one";
  EXPECT_EQ(hstujit_tool(freeze).code, 0) << "one of its own";
  // A config by the name of what emit writes.
  const std::string emitted = (scratch.path() / "emitted").string();
  ASSERT_EQ(hstujit_tool({"emit", "--config", config, "--arch", "sm_90a", "-o", emitted}).code, 0);
  for (const auto& entry : std::vector<fs::directory_entry>(fs::directory_iterator(emitted), {})) {
    const std::string own = *whole_file(entry.path());
    ASSERT_TRUE(write_file_atomically(entry.path(), words).ok());
    const Outcome refused = hstujit_tool({"emit", "--config", config, "--arch", "sm_90a", "-o", emitted});
    EXPECT_EQ(refused.code, 2) << entry.path();
    EXPECT_THAT(refused.err, HasSubstr("the existing file was not written by emit"));
    EXPECT_EQ(*whole_file(entry.path()), words);
    ASSERT_TRUE(write_file_atomically(entry.path(), own).ok());
  }
  EXPECT_EQ(hstujit_tool({"emit", "--config", config, "--arch", "sm_90a", "-o", emitted}).code, 0);
}

TEST(Inputs, ABundleAndChoicesAreNoConfig) {
  const Scratch scratch;
  const std::string choices = (scratch.path() / "choices").string(), config = scratch.config();
  ASSERT_EQ(hstujit_tool({"freeze", "--config", config, "--arch", "sm_90a", "-o", choices}).code, 0);
  EXPECT_EQ(hstujit_tool({"check", "--config", choices}).err,
            "hstujit: " + choices + " is a file of hstujit freeze; it must be a config\n");
  const std::string bundle = scratch.file("bundle", "\x28\xb5\x2f\xfd...");
  EXPECT_EQ(hstujit_tool({"check", "--config", bundle}).err,
            "hstujit: " + bundle + " is a bundle of hstujit cache export; it must be a config\n");
  const Outcome imported = hstujit_tool({"cache", "import", config, "--cache-dir", scratch.cache()});
  EXPECT_EQ(imported.code, 2);
  EXPECT_THAT(imported.err, HasSubstr("hstujit: FILE: the file " + config + " is no whole bundle: "));
}

TEST(Commands, HelpOfACommandStandsBehindIt) {
  EXPECT_EQ(hstujit_tool({"help", "check"}).err,
            "hstujit: unknown command \"help\"; commands have --help; see hstujit check --help\n");
}

}  // namespace
}  // namespace hstujit
