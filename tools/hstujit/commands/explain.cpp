// hstujit explain: which kernel each instance gets, why, and where it is cached. Compiles nothing.
#include <fmt/format.h>

#include <memory>

#include "compiler/support/text.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/report.h"
#include "tools/hstujit/values.h"

namespace hstujit {

namespace {

Cell cache_cell(const Json& row) {
  const Json& cache = member(row, "cache");
  if (member(cache, "hit") == true) {
    const std::string directory = text_of(cache, "directory");
    return {fmt::format("hit in {}", directory.empty() ? text_of(cache, "layer") : directory), Tone::kGood};
  }
  const bool any = !member(cache, "searched").empty();
  return {fmt::format("miss; {}; on a miss: {}",
                      any ? "searched " + text_of(cache, "searched") : "no cache directory can be used",
                      text_of(row, "on_miss")),
          Tone::kBad};
}

// Adds what a look-up has met instead: `miss` is the row's "cache" or "tuning_miss".
void add_miss(Fields& fields, const Json& miss) {
  for (const Json& damaged : member(miss, "damaged")) {
    fields.add("    damaged",
               Cell(fmt::format("the entry in {}: {}", text_of(damaged, "directory"), text_of(damaged, "problem")),
                    Tone::kBad));
  }
  if (const Json& nearest = member(miss, "nearest"); nearest.is_object()) {
    fields.add("    nearest", fmt::format("{} in {} {}", shown_digest(text_of(nearest, "digest")),
                                          text_of(nearest, "directory"), text_of(nearest, "sentence")));
  }
}

std::string resources_text(const Json& row) {
  const Json& resources = member(row, "resources");
  const Json& launch = member(row, "launch");
  std::string text = fmt::format("{} threads, {} of shared memory", text_of(launch, "threads"),
                                 bytes_text(number_of(launch, "shared_memory")));
  if (resources.is_object()) {
    text += fmt::format(", {} registers, {:.0f} bytes spilled, cubin {}, NVRTC {}", text_of(resources, "registers"),
                        number_of(resources, "spill_load_bytes") + number_of(resources, "spill_store_bytes"),
                        bytes_text(number_of(row, "cubin_bytes")), text_of(row, "nvrtc"));
  }
  return text;
}

void print_search(const Json& search) {
  std::string text = fmt::format("  search space: {}, {} rejected",
                                 count_text(number_of(search, "candidates"), "candidate"), text_of(search, "rejected"));
  const char* separator = ": ";
  for (const auto& [reason, count] : member(search, "reasons").items()) {
    text += fmt::format("{}{}={}", separator, reason, text_of(count));  // no line ends between the two
    separator = ", ";
  }
  write_text(stdout, paragraph(one_line(text), 4));
  Table table({{"best by the cost model"}, {"estimate [ms]", Align::kRight}}, 4);
  for (const Json& candidate : member(search, "best_estimates")) {
    table.add({text_of(candidate, "describe"), number_text(candidate, "estimate_ms", 4)});
  }
  if (!table.empty()) table.print(/*wide=*/false);
}

void print_instance(const Json& row) {
  const std::string bucket = text_of(row, "bucket");
  print("\n");
  print_paragraph("{}", row_text(row, bucket_text(row, text_of(row, "max_seq_lens"))));
  Fields fields;
  if (!bucket.empty()) fields.add("  bucket", bucket + " rows" + batches_text(row));
  fields.add("  tuning", text_of(row, "tuning_record") + ", key " + text_of(row, "tuning_key"));
  add_miss(fields, member(row, "tuning_miss"));
  if (row.contains("config")) {
    fields.add("  config", text_of(row, "describe"));
    fields.add("  from", text_of(row, "from"));
    fields.add("  why", text_of(row, "why"));
    fields.add("  kernel", text_of(row, "kernel"));
    fields.add("  key", text_of(row, "key"));
    fields.add("  cache", cache_cell(row));
    add_miss(fields, member(row, "cache"));
    fields.add("  resources", resources_text(row));
  }
  if (row.contains("note")) fields.add("  note", text_of(row, "note"));
  fields.print();
  print_search(member(row, "search_space"));
}

size_t print_explain_report(const Json& report, const Options&) {
  print("device: {}\nlengths are quantised by: {}\n", device_text(member(report, "device")),
        text_of(report, "length_mode"));
  for (const Json& row : member(report, "instances")) print_instance(row);
  return print_failures(member(report, "instances"), "error");
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("explain", "Say which kernel an instance gets, why, and from where");
  add_config(command, *options);
  add_op_or_step(command, *options);
  add_arch(command, *options);
  add_cache_dir(command, *options);
  add_json(command, *options);
  command.callback([options, &action] {
    action = [options]() -> Status {
      HSTUJIT_ASSIGN_OR_RETURN(const ConfigPtr config, load_config(options->config));
      HSTUJIT_ASSIGN_OR_RETURN(const Report report, run_operation(&hstujit_explain, "explain", *options, config.get(),
                                                                  run_options(*options)));
      return show(report, *options, print_explain_report);
    };
  });
}

}  // namespace hstujit
