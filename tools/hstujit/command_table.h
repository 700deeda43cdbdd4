// The commands and options of the program as a plain table, for what is written from it: completions, the manual page,
// suggestions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hstujit {

struct CommandOption {
  std::vector<std::string> names;    // "--jobs" "-j"; none: it is told by its place
  std::string value;                 // "FILE"; "" for a flag
  std::vector<std::string> choices;  // the values there are: "cuda" "host"; none: any
  std::string doc;
  bool required = false;
};

struct Command {
  std::string name;
  std::string doc;
  std::vector<CommandOption> options;  // in the order of --help
  std::vector<Command> commands;
};

// Value that an option takes: CLI11 joins its name and the texts of validators.
struct OptionValue {
  std::string name;     // "FILE"; "" for a flag
  std::string allowed;  // "1 to 1024"; "" where nothing is said
};

OptionValue value_of(const CLI::Option& option);

Command command_table(const CLI::App& app);

}  // namespace hstujit
