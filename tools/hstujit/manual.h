// The manual page of the program, in the language of man(7), from the table of commands.
#pragma once

#include <string>
#include <string_view>

#include "tools/hstujit/command_table.h"

namespace hstujit {

// `program` is the table of the whole program.
std::string manual_page(const Command& program, std::string_view version);

}  // namespace hstujit
