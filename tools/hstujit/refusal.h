// Answers of the program to a command line that it does not carry out: help, the version, or what is wrong with it.
#pragma once

#include <CLI/CLI.hpp>
#include <span>

#include "tools/hstujit/exit_code.h"

namespace hstujit {

// Refuses values of every option that takes none: --wide=3 is a mistake.
void refuse_values_of_flags(CLI::App& app);

// Throws CLI::ValidationError where an option or argument was given an empty text, as by a shell's variable that is not
// set: what it would stand for instead is nobody's wish. And CLI::ArgumentMismatch where it was given the name of
// another option.
void check_given_values(const CLI::App& app);

// Throws it for an option that is written --name= with nothing behind it: CLI11 would take the next argument for it.
void check_not_cut_off(int argc, const char* const* argv);

// `error` as app.parse or check_given_values has thrown it; `arguments` are the process's.
ExitCode refuse(const CLI::App& app, const CLI::ParseError& error, std::span<const char* const> arguments);

}  // namespace hstujit
