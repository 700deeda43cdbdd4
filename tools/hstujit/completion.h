// Scripts with which shells complete the program's commands, options and their values, from the table of commands.
#pragma once

#include <string>

#include "tools/hstujit/command_table.h"

namespace hstujit {

// `program` is the table of the whole program; each text is a file for the shell's folder of completions.
std::string bash_completion(const Command& program);
std::string fish_completion(const Command& program);
std::string zsh_completion(const Command& program);

}  // namespace hstujit
