// hstujit completion, hstujit manual: what is written from the table of the program's own commands.
#include "tools/hstujit/completion.h"

#include <map>
#include <memory>

#include "tools/hstujit/command.h"
#include "tools/hstujit/command_table.h"
#include "tools/hstujit/manual.h"
#include "tools/hstujit/output.h"

namespace hstujit {

void add_completion(CLI::App& app, Action& action) {
  using Writer = std::string (*)(const Command&);
  static const std::map<std::string, Writer> writers = {
      {"bash", &bash_completion}, {"fish", &fish_completion}, {"zsh", &zsh_completion}};
  const auto shell = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand("completion", "Print what makes a shell complete commands and options");
  command.add_option("SHELL", *shell, "the shell that reads it")
      ->required()
      ->type_name("bash|fish|zsh")
      ->check(one_of({"bash", "fish", "zsh"}));
  command.callback([shell, &app, &action] {
    action = [shell, &app]() -> Status {
      write_text(stdout, writers.at(*shell)(command_table(app)));
      return {};
    };
  });
}

void add_manual(CLI::App& app, Action& action) {
  app.add_subcommand("manual", "Print the manual page: hstujit manual | man -l -")->callback([&app, &action] {
    action = [&app]() -> Status {
      write_text(stdout, manual_page(command_table(app), hstujit_version()));
      return {};
    };
  });
}

}  // namespace hstujit
