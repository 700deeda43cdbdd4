// hstujit check: reads a config, names all of its mistakes, and says what will be compiled for it. Compiles nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/support/json.h"
#include "compiler/support/text.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/report.h"
#include "tools/hstujit/values.h"

namespace hstujit {

namespace {

// Data type and heads, which are easily forgotten, and what else is not at its default: "  dtype=fp16 heads=4 ...". In
// lines as wide as tables.
std::vector<std::string> parameter_lines(const Json& instance) {
  constexpr size_t kColumns = 100;
  std::vector<std::string> lines;
  for (const auto& [name, value] : member(instance, "parameters").items()) {
    const std::string word = value == true    ? name
                             : value == false ? name + "=false"
                                              : fmt::format("{}={}", name, text_of(value));
    if (lines.empty() || lines.back().size() + 1 + word.size() > kColumns) lines.emplace_back(" ");
    lines.back() += " " + word;
  }
  return lines;
}

// The instance of the config: keys of a program are of its steps, "NAME/STEP".
std::string instance_of(const Json& instance) {
  const std::string name = text_of(instance, "name");
  return name.substr(0, name.find('/'));
}

size_t print_instance(const Json& instance, bool wide) {
  const Json& keys = member(instance, "keys");
  print("\n");
  print_paragraph("{}: {}, {}", text_of(instance, "name"), text_of(instance, "op"),
                  count_text(static_cast<double>(keys.size()), "key"));
  for (const std::string& line : parameter_lines(instance)) print("{}\n", line);
  if (instance.contains("note")) write_text(stdout, paragraph("  " + text_of(instance, "note"), 2));
  Table table({{"direction"}, {"bucket [rows]", Align::kRight}, {"of max_seq_len"}, {"kernel"}, {"from"}}, 2);
  for (const Json& key : keys) {
    table.add({text_of(key, "direction"), bucket_text(key), text_of(key, "max_seq_len"), text_of(key, "describe"),
               text_of(key, "from")});
  }
  table.print(wide);
  return print_failures(keys, "error");
}

size_t print_check_report(const Json& report, const Options& options) {
  const Json& device = member(report, "device");
  print("device: {}\nlengths are quantised by: {}\n",
        device.is_null() ? "none; pass --arch to see kernels" : device_text(device), text_of(report, "length_mode"));
  size_t failures = 0;
  std::set<std::string> instances;
  for (const Json& instance : member(report, "instances")) {
    instances.insert(instance_of(instance));
    failures += print_instance(instance, options.wide);
  }
  const double without = number_of(report, "without_kernel");
  print("\nvalid: {}, {}{}\n", count_text(static_cast<double>(instances.size()), "instance"),
        count_text(number_of(report, "keys"), "key"),
        without > 0 ? fmt::format("; {} without a kernel", count_text(without, "key")) : "");
  return failures;
}

// Prints the mistakes of a config that was read, whose sentences the library separates.
Status show_mistakes(const Status& status, const Options& options) {
  if (!options.json || status.code() != Code::kInvalidConfig) return status;
  const Json report = {{"valid", false}, {"mistakes", split(status.message(), '\n')}};
  print_json(json_text(report));
  return Status(status.code(), "");
}

Status check(const Options& options) {
  const Result<ConfigPtr> config = load_config(options.config);
  if (!config.ok()) return show_mistakes(config.status(), options);
  HSTUJIT_ASSIGN_OR_RETURN(const Report report,
                           run_operation(&hstujit_check, "check", options, config->get(), run_options(options)));
  return show(report, options, print_check_report);
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("check", "Name all mistakes of a config, and say what will be compiled");
  add_config(command, *options);
  add_op_or_step(command, *options);
  add_arch(command, *options);
  add_cache_dir(command, *options);
  add_wide(command, *options);
  add_json(command, *options);
  command.callback([options, &action] { action = [options] { return check(*options); }; });
}

}  // namespace hstujit
