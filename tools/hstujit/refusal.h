// What the program says to a command line that it does not carry out: help, the version, or what is wrong with it.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/hstujit/exit_code.h"

namespace hstujit {

// `error` as app.parse has thrown it.
ExitCode refuse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace hstujit
