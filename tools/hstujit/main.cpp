// hstujit: the command line program. Every command is a file in commands/; docs/cli.md describes them all.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "compiler/support/text.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/exit_code.h"

namespace {

using hstujit::Action;
using hstujit::ExitCode;
using hstujit::Status;

int fail(const Status& status) {
  for (const std::string& line : hstujit::split(status.message(), '\n')) fmt::print(stderr, "hstujit: {}\n", line);
  return static_cast<int>(hstujit::exit_code(status.code()));
}

// The innermost command that was named.
const CLI::App& named_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : named_command(*chosen.front());
}

int refuse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = named_command(app);
  std::string sentence = error.what();
  // CLI11 says only that a command is missing when a wrong one was given, and lists what is left over in no order.
  if (const std::vector<std::string> rest = command.remaining(); !rest.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* known : command.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(known->get_name());
    }
    const auto option = std::find_if(rest.begin(), rest.end(), [](const auto& text) { return text.starts_with('-'); });
    if (option != rest.end()) {
      sentence = fmt::format("there is no option {}", *option);
    } else if (!names.empty()) {
      sentence = fmt::format("there is no command \"{}\"; commands: {}", rest.front(), fmt::join(names, ", "));
    } else {
      sentence = fmt::format("\"{}\" is one argument too many", rest.front());
    }
  }
  std::string path;
  for (const CLI::App* part = &command; part->get_parent() != nullptr; part = part->get_parent()) {
    path = part->get_name() + " " + path;
  }
  fmt::print(stderr, "hstujit: {}; see hstujit {}--help\n", sentence, path);
  return static_cast<int>(ExitCode::kBadRequest);
}

int run(int argc, char** argv) {
  CLI::App app("Just-in-time compiled CUDA operators for generative recommenders", "hstujit");
  app.set_version_flag("--version", std::string("hstujit ") + hstujit_version());
  app.require_subcommand(1);
  Action action;
  hstujit::add_check(app, action);
  hstujit::add_prewarm(app, action);
  hstujit::add_tune(app, action);
  hstujit::add_run(app, action);
  hstujit::add_bench(app, action);
  hstujit::add_emit(app, action);
  hstujit::add_freeze(app, action);
  hstujit::add_explain(app, action);
  hstujit::add_doctor(app, action);
  hstujit::add_cache(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return refuse(app, error);
  }
  std::fflush(stdout);
  const Status status = action();
  if (std::fflush(stdout) != 0) return fail(Status(hstujit::Code::kIo, "cannot write to standard output"));
  return status.ok() ? static_cast<int>(ExitCode::kDone) : fail(status);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return fail(Status(hstujit::Code::kInternal, fmt::format("a bug in the program: {}", error.what())));
  }
}
