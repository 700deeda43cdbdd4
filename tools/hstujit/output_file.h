// The files that commands write.
#pragma once

#include <string>

#include "compiler/support/status.h"
#include "tools/hstujit/command.h"

namespace hstujit {

// Before the work whose outcome goes to `output`, which `option` of the command line names: what check_output says, and
// kInvalidArgument for a file that the command reads, by whatever name, since it would be lost. What a config names is
// among these. `grid` is read like one.
Status check_output_file(std::string_view option, const std::string& output, const Options& options,
                         const std::string& grid = "");

}  // namespace hstujit
