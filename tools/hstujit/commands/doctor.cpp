// hstujit doctor: what this machine has and what is missing.
#include <fmt/format.h>

#include <memory>

#include "tools/hstujit/command.h"
#include "tools/hstujit/report.h"

namespace hstujit {

namespace {

// `without` says what does not work when the part is missing, so that a machine without a GPU frightens nobody.
void add_part(Fields& fields, const std::string& name, const Json& part, const std::string& without) {
  if (member(part, "ok") == true) {
    const std::string version = driver_text(member(part, "version"));
    fields.add(name, Cell((version.empty() ? "" : version + ", ") + text_of(part, "path"), Tone::kGood));
    return;
  }
  fields.add(name, Cell("missing: " + without, Tone::kBad));
  fields.add("", text_of(part, "problem"));
}

Cell directory(const Json& directory) {
  std::string text = text_of(directory, "path");
  if (text_of(directory, "role") == "remote") {
    const std::string problem = text_of(directory, "problem");
    if (problem.empty()) return {text + ", remote, answers", Tone::kGood};
    return {fmt::format("{}, remote, is no use: {}", text, problem), Tone::kBad};
  }
  const bool writable = text_of(directory, "role") == "user";
  if (!writable) text += ", read-only layer";
  if (member(directory, "exists") != true) text += writable ? ", will be created" : ", does not exist";
  const bool ok = member(directory, "ok") == true;
  if (!ok && writable) text += ": not writable, kernels will be compiled again in every process";
  return {text, ok ? Tone::kGood : Tone::kBad};
}

size_t print_report(const Json& report) {
  const Json& library = member(report, "library");
  Fields fields;
  fields.add("hstujit",
             fmt::format("{}, generator {}", text_of(library, "version"), text_of(library, "generator").substr(0, 12)));
  add_part(fields, "CUDA driver", member(report, "driver"),
           "nothing runs on a GPU; prewarm, emit, explain and the host backend work");
  int ordinal = 0;
  for (const Json& device : member(report, "devices")) {
    const std::string problem = text_of(device, "problem");
    fields.add(fmt::format("GPU {}", ordinal++),
               problem.empty() ? Cell(device_text(device), Tone::kGood) : Cell(problem, Tone::kBad));
  }
  if (ordinal == 0) fields.add("GPU", "none");
  add_part(fields, "compiler", member(report, "compiler"), "only cached kernels work");
  add_part(fields, "NVRTC", member(report, "nvrtc"), "only cached kernels work");
  add_part(fields, "host backend", member(report, "host_backend"), "--backend host does not work");
  for (const Json& cache : member(report, "cache")) fields.add("cache", directory(cache));
  if (member(report, "cache").empty()) {
    fields.add("cache", Cell("none: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset", Tone::kBad));
  }
  fields.add("on a miss", text_of(report, "on_miss"));
  fields.add("length mode", text_of(report, "length_mode"));
  for (const auto& [name, value] : member(report, "environment").items()) fields.add(name, text_of(value));
  fields.print();
  return 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("doctor", "Show driver, GPU, compilers, libraries and cache directories");
  add_cache_dir(command, *options);
  add_json(command, *options);
  command.callback([options, &action] {
    action = [options]() -> Status {
      HSTUJIT_ASSIGN_OR_RETURN(const ContextPtr context, open_context(options->cache_dir));
      HSTUJIT_ASSIGN_OR_RETURN(const Report report, report_of(&hstujit_doctor, context.get()));
      return show(report, *options, print_report);
    };
  });
}

}  // namespace hstujit
