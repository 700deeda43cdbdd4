// The files that commands write.
#pragma once

#include <string>
#include <string_view>

#include "compiler/support/status.h"
#include "tools/hstujit/command.h"

namespace hstujit {

// Output of a command. It replaces a file of that kind, or an empty one, and no other.
enum class OutputKind {
  kBundle,   // of cache export
  kChoices,  // of freeze
  kReport,   // of bench
  kPage,     // of report
};

// Before the work whose outcome goes to `output`, which `option` of the command line names: kInvalidArgument or
// kNotFound for what check_output refuses, for a file that the command reads, by whatever name, since it would be lost,
// and for one of another kind. What a config names is among those that are read. `grid` is read like one.
Status check_output_file(std::string_view option, const std::string& output, OutputKind kind, const Options& options,
                         const std::string& grid = "");

// The same failure, of a file or folder that `option` names and that was refused before the work: a wrong argument.
Status refused_output(std::string_view option, const Status& status);

}  // namespace hstujit
