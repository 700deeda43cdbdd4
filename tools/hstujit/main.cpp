// hstujit: the command line tool. Every command is a file in commands/; docs/cli.md describes them all.
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>

#include "compiler/support/standard_streams.h"
#include "compiler/support/text.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/exit_code.h"
#include "tools/hstujit/help.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/refusal.h"
#include "tools/hstujit/stack_limit.h"

namespace {

using hstujit::Action;
using hstujit::Code;
using hstujit::ExitCode;
using hstujit::Status;

ExitCode fail(const Status& status) {
  // The library names all mistakes of a config, and of the environment, one a line.
  if (status.code() == Code::kInvalidConfig || status.code() == Code::kInvalidArgument) {
    for (const std::string& line : hstujit::split(status.message(), '\n')) hstujit::print_error(line);
  } else if (!status.message().empty()) {
    hstujit::print_error(status.message());
  }
  return hstujit::exit_code(status.code());
}

// Takes no memory itself.
ExitCode fail_without_memory() {
  hstujit::write_text(stderr, "hstujit: the memory that this process may have is used up\n");
  return ExitCode::kFailed;
}

ExitCode run(int argc, char** argv) {
  CLI::App app("Just-in-time compiled CUDA operators for generative recommenders", "hstujit");
  app.formatter(std::make_shared<hstujit::HelpFormatter>());  // of the commands, too
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
  hstujit::add_report(app, action);
  hstujit::add_doctor(app, action);
  hstujit::add_cache(app, action);
  hstujit::add_completion(app, action);
  hstujit::add_manual(app, action);
  hstujit::refuse_values_of_flags(app);
  try {
    hstujit::check_not_cut_off(argc, argv);
    app.parse(argc, argv);
    hstujit::check_given_values(app);
  } catch (const CLI::ParseError& error) {
    return hstujit::refuse(app, error, {argv, static_cast<size_t>(argc)});
  }
  const Status status = action();
  return status.ok() ? ExitCode::kDone : fail(status);
}

ExitCode run_guarded(int argc, char** argv) {
  try {
    const Status stack = hstujit::check_stack_limit();
    return stack.ok() ? run(argc, argv) : fail(stack);
  } catch (const std::bad_alloc&) {
    return fail_without_memory();
  } catch (const std::system_error& error) {
    return fail(Status(Code::kOutOfMemory, "the system refuses what hstujit needs: " + error.code().message()));
  } catch (const std::exception& error) {
    return fail(Status(Code::kInternal, std::string("a bug in hstujit: ") + error.what()));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  hstujit::protect_standard_streams();
  ExitCode code = run_guarded(argc, argv);
  // Output that is lost is a failure, and no reason to forget another.
  const Status written = hstujit::close_output();
  if (!written.ok()) {
    const ExitCode lost = fail(written);
    if (code == ExitCode::kDone) code = lost;
  }
  return static_cast<int>(code);
} catch (const std::bad_alloc&) {
  return static_cast<int>(fail_without_memory());
}
