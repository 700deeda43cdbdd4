// The manual page and the completions, which are written from the program's own table of commands.
#include "tools/hstujit/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/paths.h"
#include "tests/support/whole_file.h"
#include "tests/tools/program.h"
#include "tools/hstujit/manual.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

Command sample() {
  CommandOption file{{"--file", "-f"}, "FILE", {}, "a file; it's read", true};
  CommandOption backend{{"--backend"}, "cuda|host", {"cuda", "host"}, "where it runs", false};
  CommandOption flag{{"--json"}, "", {}, "a report", false};
  CommandOption placed{{}, "FILE", {}, ".first", true};
  Command list{"ls", "List", {flag}, {}};
  Command import{"import", "Import", {placed}, {}};
  Command run{"run", "Run it", {file, backend, flag}, {}};
  return {"tool", "Does things", {flag}, {run, {"cache", "The cache", {}, {list, import}}}};
}

// Words that bash offers at the end of `words`, of which the last is begun.
std::string offered(const std::string& script, const std::vector<std::string>& words) {
  const Scratch scratch;
  std::string line = script + "\ncompopt() { :; }\nCOMP_WORDS=(";
  for (const std::string& word : words) line += " '" + word + "'";
  line += ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) + "\n_" + words[0] + "\necho \"${COMPREPLY[*]}\"\n";
  const Outcome outcome = run_program({"/bin/bash", scratch.file("complete", line)});
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

TEST(Completion, BashOffersCommandsOptionsAndValues) {
  if (run_program({"/bin/bash", "-c", ":"}).code != 0) GTEST_SKIP() << "no bash here";
  const std::string script = bash_completion(sample());
  EXPECT_EQ(offered(script, {"tool", ""}), "run cache --json\n");
  EXPECT_EQ(offered(script, {"tool", "cache", ""}), "ls import\n");
  EXPECT_EQ(offered(script, {"tool", "cache", "ls", "--"}), "--json\n");
  EXPECT_EQ(offered(script, {"tool", "run", "--b"}), "--backend\n");
  EXPECT_EQ(offered(script, {"tool", "run", "--backend", ""}), "cuda host\n");
  const Scratch scratch;
  const std::string file = scratch.file("a bundle", "");
  const std::string begun = file.substr(0, file.size() - 3);
  EXPECT_EQ(offered(script, {"tool", "run", "-f", begun}), file + "\n");
  EXPECT_EQ(offered(script, {"tool", "cache", "import", begun}), file + "\n");
}

TEST(Completion, TheProgramsOwnKnowsItsCommands) {
  if (run_program({"/bin/bash", "-c", ":"}).code != 0) GTEST_SKIP() << "no bash here";
  const Outcome script = hstujit_tool({"completion", "bash"});
  ASSERT_EQ(script.code, 0) << script.err;
  EXPECT_EQ(offered(script.out, {"hstujit", "prew"}), "prewarm\n");
  EXPECT_EQ(offered(script.out, {"hstujit", "cache", "ver"}), "verify\n");
  EXPECT_EQ(offered(script.out, {"hstujit", "cache", "prune", "--nv"}), "--nvrtc\n");
  EXPECT_EQ(offered(script.out, {"hstujit", "cache", "prune", "--h"}), "--help\n") << "once";
  EXPECT_EQ(offered(script.out, {"hstujit", "run", "--backend", ""}), "cuda host\n");
  EXPECT_EQ(offered(script.out, {"hstujit", "completion", ""}).substr(0, 13), "bash fish zsh");
}

TEST(Completion, FishAndZshHaveEveryCommandAndOption) {
  const std::string fish = fish_completion(sample());
  EXPECT_THAT(fish, HasSubstr("complete -c tool -n 'not __fish_seen_subcommand_from run cache' -a run -d 'Run it'\n"));
  EXPECT_THAT(fish, HasSubstr("complete -c tool -n '__fish_seen_subcommand_from cache; and not "
                              "__fish_seen_subcommand_from ls import' -a import -d 'Import'\n"));
  EXPECT_THAT(fish, HasSubstr("complete -c tool -n '__fish_seen_subcommand_from run' -l file -s f -r -F -d 'a file; "
                              "it'\\''s read'\n"));
  EXPECT_THAT(fish, HasSubstr(" -l backend -x -a 'cuda host' -d "));
  const std::string zsh = zsh_completion(sample());
  EXPECT_TRUE(zsh.starts_with("#compdef tool\n"));
  EXPECT_THAT(zsh, HasSubstr("(\"run --file\" | \"run -f\") _files; return ;;\n"));
  EXPECT_THAT(zsh, HasSubstr("(\"run --backend\") compadd -- cuda host; return ;;\n"));
  EXPECT_THAT(zsh, HasSubstr("'--file:a file; it'\\''s read'\n"));
}

TEST(Manual, NamesEveryCommandOptionCodeAndVariable) {
  const std::string page = manual_page(sample(), "1.2");
  for (const char* part : {".TH TOOL 1 \"\" \"hstu\\-jit 1.2\"", ".SS tool cache ls\nList.\n",
                           ".TP\n\\fB\\-\\-file, \\-f\\fR \\fIFILE\\fR\na file; it's read; required\n", "\n\\&.first",
                           ".TP\n.B 3\nno usable device", ".B HSTUJIT_CACHE_DIR\n"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  const Outcome own = hstujit_tool({"manual"});
  EXPECT_EQ(own.code, 0);
  EXPECT_THAT(own.out, HasSubstr(".SS hstujit cache prune\n"));
  EXPECT_THAT(own.out, HasSubstr("\\fB\\-\\-max\\-bytes\\fR \\fISIZE\\fR\n"));
}

TEST(Manual, BuildsWithTheProgram) {
  for (const char* file : {"man/man1/hstujit.1", "bash-completion/completions/hstujit",
                           "fish/vendor_completions.d/hstujit.fish", "zsh/site-functions/_hstujit"}) {
    const auto text = whole_file(std::filesystem::path(binary_path()) / "share" / file);
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_THAT(*text, HasSubstr("prewarm")) << file;
  }
}

}  // namespace
}  // namespace hstujit
