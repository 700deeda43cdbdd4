// A command of the program: it declares its options and sets `action` when the command line names it.
//
// Each command is one file, commands/<name>.cpp, with one function below. An action prints its report and returns what
// failed; main turns that into the sentence on standard error and the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tools/hstujit/api.h"
#include "tools/hstujit/shard.h"

namespace hstujit {

using Action = std::function<Status()>;

void add_check(CLI::App& app, Action& action);
void add_prewarm(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_emit(CLI::App& app, Action& action);
void add_freeze(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_cache(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_manual(CLI::App& app, Action& action);

// Options that several commands share. A command adds those it has.
struct Options {
  std::string config;
  std::string op;
  std::string arch;
  std::string cache_dir;
  std::string directory;
  std::string backend = "cuda";
  int jobs = 0;
  int device = 0;
  double budget_s = 0;
  std::string shard;
  ShardOption part;  // what `shard` says
  bool json = false;
  bool wide = false;  // tables with all columns
};

// For an option that is one of these words.
CLI::Validator one_of(std::vector<std::string> allowed);

// For an option that is a whole number: decimal digits from `lowest` to `highest`, where CLI11 itself would read 010 as
// octal.
CLI::Validator whole_number_from(uint64_t lowest, uint64_t highest);

inline constexpr int kLargestDevice = 1023;  // CUDA ordinal

CLI::Option* add_config(CLI::App& command, Options& options);  // required
void add_op(CLI::App& command, Options& options);              // of what launches instances whole
void add_op_or_step(CLI::App& command, Options& options);      // of what is about kernels
void add_arch(CLI::App& command, Options& options);
void add_cache_dir(CLI::App& command, Options& options);
void add_jobs(CLI::App& command, Options& options);
void add_device(CLI::App& command, Options& options);
void add_budget(CLI::App& command, Options& options);
void add_shard(CLI::App& command, Options& options);
void add_json(CLI::App& command, Options& options);
void add_wide(CLI::App& command, Options& options);

// The same for the library; its pointers are into `options`.
hstujit_run_options run_options(const Options& options);

// The operations of the API on whole configs.
using Operation = hstujit_status (*)(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                     hstujit_text*);

// Opens the context and runs one with a progress bar named `label`.
Result<Report> run_operation(Operation operation, const std::string& label, const Options& options,
                             const hstujit_config* config, hstujit_run_options run);

// Prints a report in the form that is asked for and returns how many failures it has named.
using Printer = size_t (*)(const Json& report, const Options& options);

// Prints a report: as the library wrote it with --json, else by `printer`. Returns what failed, without a sentence
// where it was named already.
Status show(const Report& report, const Options& options, Printer printer);

// A status that says that there is no GPU, with what `to_do` instead: "there is no GPU to <use>; <to_do>" where the
// report has said the rest. One that says that there is none of a number names the `option` that gave it. Any other is
// given back as it is.
Status without_a_gpu(const Status& status, std::string_view use, std::string_view to_do,
                     std::string_view option = "--device");

}  // namespace hstujit
