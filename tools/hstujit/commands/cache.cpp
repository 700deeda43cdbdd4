// hstujit cache: look at the cache, check it, bound it, carry it elsewhere, say where it is.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/numbers.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/output_file.h"
#include "tools/hstujit/report.h"
#include "tools/hstujit/values.h"

namespace hstujit {

namespace {

struct CacheOptions : Options {
  uint64_t max_bytes = 0;
  std::string nvrtc;
  std::string file;      // export, import: the bundle
  bool shipped = false;  // ls
};

constexpr int kCompressionLevel = 12;  // of zstd: the last before it becomes slow; reading is as quick for any

std::string size_in_bytes(std::string& text) {
  const std::optional<int64_t> bytes = whole_size(text);
  if (!bytes) return fmt::format("{} is no size; allowed: {}", quote(text), kSizeAllowed);
  text = fmt::format("{}", *bytes);
  return "";
}

// Prints the date of a time that may come from anywhere; "" for one that no calendar has.
std::string date_text(double seconds) {
  constexpr double kLatest = 253402300799;  // the end of the year 9999
  if (!(seconds > 0 && seconds < kLatest)) return "";
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

void print_kernels(const Json& kernels, bool wide) {
  Table table({{"digest"},
               {"kernel"},
               {"arch"},
               {"NVRTC", Align::kLeft, Show::kWide},
               {"registers", Align::kRight, Show::kWide},
               {"size [KiB]", Align::kRight},
               {"last used"},
               {"role"},
               {"directory", Align::kLeft, Show::kWide}});
  for (const Json& kernel : kernels) {
    table.add({shown_digest(text_of(kernel, "digest")), text_of(kernel, "kernel"), text_of(kernel, "arch"),
               text_of(kernel, "nvrtc"), text_of(member(kernel, "resources"), "registers"),
               number_text(kernel, "bytes", 1, 1.0 / 1024), date_text(number_of(kernel, "last_used")),
               text_of(kernel, "role"), text_of(kernel, "directory")});
  }
  if (!table.empty()) table.print(wide);
}

bool is_shipped(const Json& record) { return text_of(record, "role") == "shipped"; }

void print_records(const Json& records, bool wide, bool shipped) {
  Table table({{"record"},
               {"operator"},
               {"direction"},
               {"device"},
               {"bucket [rows]", Align::kRight},
               {"winner", Align::kLeft, Show::kWide},
               {"timed", Align::kRight, Show::kWide},
               {"rejected", Align::kRight, Show::kWide},
               {"role"},
               {"directory", Align::kLeft, Show::kWide}});
  for (const Json& record : records) {
    if (!shipped && is_shipped(record)) continue;
    table.add({shown_digest(text_of(record, "digest")), text_of(record, "op"), text_of(record, "direction"),
               text_of(record, "device"), bucket_text(record), config_text(member(record, "winner")),
               text_of(record, "timed"), text_of(record, "rejected"), text_of(record, "role"),
               text_of(record, "directory")});
  }
  if (!table.empty()) table.print(wide);
}

// Prints the number of the records that came with the library, and with `all` the records, too.
size_t print_entries(const Json& report, bool wide, bool all) {
  const Json& kernels = member(report, "kernels");
  const Json& records = member(report, "tuning");
  const auto shipped = std::count_if(records.begin(), records.end(), is_shipped);
  const bool any_record = all ? !records.empty() : shipped < static_cast<std::ptrdiff_t>(records.size());
  print_kernels(kernels, wide);
  if (!kernels.empty() && any_record) write_text(stdout, "\n");
  print_records(records, wide, all);
  if (!kernels.empty() || any_record) write_text(stdout, "\n");
  print_paragraph("{}, {}; {}{}, {}", count_text(static_cast<double>(kernels.size()), "kernel"),
                  bytes_text(number_of(report, "bytes")),
                  count_text(static_cast<double>(records.size()), "tuning record"),
                  shipped > 0 ? fmt::format(", {} of them shipped{}", shipped, all ? "" : " (--shipped)") : "",
                  count_text(static_cast<double>(member(report, "choices").size()), "choice"));
  for (const Json& folder : member(report, "not_read"))
    print_error(fmt::format("{} is not read: {}", text_of(folder, "path"), text_of(folder, "problem")));
  return 0;
}

size_t print_list(const Json& report, const Options& options) { return print_entries(report, options.wide, false); }
size_t print_whole_list(const Json& report, const Options& options) {
  return print_entries(report, options.wide, true);
}

size_t print_verification(const Json& report, const Options&) {
  for (const Json& file : member(report, "bad")) {
    print_paragraph("{}: {}", text_of(file, "path"), text_of(file, "problem"));
  }
  print_paragraph("verified: {}, {} bad", count_text(number_of(report, "files"), "entry"),
                  member(report, "bad").size());
  return 0;
}

size_t print_pruning(const Json& report, const Options&) {
  print_paragraph("pruned: {} removed, {}; {} kept, {}; {} of interrupted writers removed",
                  count_text(number_of(report, "removed"), "kernel"), bytes_text(number_of(report, "removed_bytes")),
                  text_of(report, "kept"), bytes_text(number_of(report, "kept_bytes")),
                  count_text(number_of(report, "leftovers"), "leftover"));
  return 0;
}

size_t print_export(const Json& report, const Options&) {
  print("contents: SHA-256 {}\n", text_of(report, "sha256"));
  print("exported: {}, {}, {}; {}\n", count_text(number_of(report, "kernels"), "kernel"),
        count_text(number_of(report, "tuning"), "tuning record"), count_text(number_of(report, "choices"), "choice"),
        bytes_text(number_of(report, "bytes")));
  if (number_of(report, "kernels") == 0)
    print_error("warning: no kernel is exported; a machine that may not compile needs those of hstujit prewarm");
  if (const Json& refused = member(report, "refused"); !refused.empty()) {
    print_error(fmt::format("warning: {} of the cache {} left out; the first is {}: {}; hstujit cache verify names all",
                            count_text(static_cast<double>(refused.size()), "file"), refused.size() == 1 ? "is" : "are",
                            text_of(refused.front(), "path"), text_of(refused.front(), "problem")));
  }
  return 0;
}

size_t print_import(const Json& report, const Options&) {
  print("contents: SHA-256 {}\n", text_of(report, "sha256"));
  print_paragraph("imported: {}, {} new; {}, {} new, {} changed; {}, {} new",
                  count_text(number_of(report, "kernels"), "kernel"), text_of(report, "new_kernels"),
                  count_text(number_of(report, "tuning"), "tuning record"), text_of(report, "new_tuning"),
                  text_of(report, "changed_tuning"), count_text(number_of(report, "choices"), "choice"),
                  text_of(report, "new_choices"));
  if (const double left_out = number_of(report, "left_out"); left_out > 0) {
    print_error(fmt::format("warning: {} of the bundle {} left out; the cache's own leave no room in a tuning record",
                            count_text(left_out, "finding"), left_out == 1 ? "is" : "are"));
  }
  return 0;
}

Result<std::string> compress(const std::string& bytes) {
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  if (context == nullptr) return Status(Code::kOutOfMemory, "the host's memory is used up");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  const size_t size = ZSTD_compress2(context.get(), frame.data(), frame.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(size) != 0)
    return Status(Code::kInternal,
                  fmt::format("zstd cannot compress {} bytes: {}", bytes.size(), ZSTD_getErrorName(size)));
  frame.resize(size);
  return frame;
}

// The failure of writing an archive on the way to a file. Where the archive is none that is worth a file, the sentence
// is about the file; where the archive could not be written, about the folder that it was to be in.
Status said_of(const std::string& file, const std::string& archive, const Status& status) {
  std::string message(status.message());
  const size_t place = message.find(archive);
  if (place == std::string::npos) return status;
  if (status.code() == Code::kNotFound) {
    message.replace(place, archive.size(), printable(file));
  } else {
    message += "; it is a temporary file: TMPDIR may name another folder for these";
  }
  return Status(status.code(), std::move(message));
}

// The library writes the archive and the program compresses it: only reading has to be everywhere.
Status export_bundle(const CacheOptions& options) {
  const std::filesystem::path file = options.file;
  HSTUJIT_RETURN_IF_ERROR(check_output_file("FILE", options.file, OutputKind::kBundle, options));
  HSTUJIT_ASSIGN_OR_RETURN(const ContextPtr context, open_context(options.cache_dir));
  // Where the system clears up after a program that is killed.
  HSTUJIT_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create());
  const std::string archive = (folder.path() / "bundle.tar").native();
  hstujit_cache_export_options given = HSTUJIT_INIT(hstujit_cache_export_options);
  if (!options.op.empty()) given.op = options.op.c_str();
  Result<Report> exported = report_of(&hstujit_cache_export, context.get(), archive.c_str(), &given);
  if (!exported.ok()) return said_of(options.file, archive, exported.status());
  Report report = std::move(exported).value();
  HSTUJIT_ASSIGN_OR_RETURN(const std::string bytes, read_file(archive, kMaxBundleBytes));
  HSTUJIT_ASSIGN_OR_RETURN(const std::string frame, compress(bytes));
  HSTUJIT_RETURN_IF_ERROR(write_file_atomically(file, frame));
  report.json["path"] = options.file;
  report.json["bytes"] = frame.size();
  report.text = json_text(report.json);
  return show(report, options, print_export);
}

Status print_path(const CacheOptions& options) {
  HSTUJIT_ASSIGN_OR_RETURN(const ContextPtr context, open_context(options.cache_dir));
  hstujit_text text = {};
  if (Status status = api_status(hstujit_cache_path(context.get(), &text)); !status.ok()) {
    if (status.code() != Code::kNotFound) return status;
    return Status(Code::kInvalidArgument,
                  "there is no cache directory: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset; --cache-dir "
                  "names one");
  }
  const std::string path(text.data, text.size);
  hstujit_text_free(&text);
  print("{}\n", path);
  return {};
}

Status import_bundle(const CacheOptions& options) {
  HSTUJIT_RETURN_IF_ERROR(of_input("FILE", options.file, read_file_head(options.file, 1).status()));
  HSTUJIT_ASSIGN_OR_RETURN(const ContextPtr context, open_context(options.cache_dir));
  const Result<Report> report = report_of(&hstujit_cache_import, context.get(), options.file.c_str());
  if (report.ok()) return show(*report, options, print_import);
  const Status status = of_input("FILE", options.file, report.status());
  // The library calls any failure of reading kIo.
  if (!status.message().starts_with(fmt::format("the file {} is no whole bundle", printable(options.file))))
    return status;
  return Status(Code::kInvalidArgument, "FILE: " + status.message());
}

// Checks --cache-dir, where it alone says what is looked at. No context is opened for a path that is not a directory.
Status check_cache_dir(const std::string& cache_dir) {
  const char* const others = std::getenv("HSTUJIT_CACHE_PATH");
  if (cache_dir.empty() || (others != nullptr && *others != 0)) return {};
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(cache_dir, error).type();
  const auto refused = [&cache_dir](Code code, std::string_view problem) {
    return Status(code, fmt::format("--cache-dir is {}, {}", quote(cache_dir), problem));
  };
  if (type == std::filesystem::file_type::not_found) {
    const bool link = std::filesystem::is_symlink(cache_dir, error);
    return refused(Code::kNotFound, link ? "a link that leads nowhere" : "which does not exist");
  }
  if (error) return refused(Code::kInvalidArgument, "which cannot be read: " + error.message());
  return {};
}

// A report on what is there. A directory that nobody has made yet is an empty cache, but whoever names one to look at
// means another.
template <typename Call>
Status report_on_existing(const CacheOptions& options, const Call& call, Printer printer) {
  HSTUJIT_ASSIGN_OR_RETURN(const ContextPtr context, open_context(options.cache_dir));
  HSTUJIT_RETURN_IF_ERROR(check_cache_dir(options.cache_dir));
  HSTUJIT_ASSIGN_OR_RETURN(const Report report, call(context.get()));
  return show(report, options, printer);
}

// A version that no kernel has is likely a misspelt one: says which there are.
Result<Report> prune_of(const CacheOptions& options, hstujit_context* context) {
  if (options.nvrtc.empty()) return report_of(&hstujit_cache_prune, context, options.max_bytes);
  HSTUJIT_ASSIGN_OR_RETURN(Report pruned, report_of(&hstujit_cache_prune_nvrtc, context, options.nvrtc.c_str()));
  if (number_of(pruned.json, "removed") + number_of(pruned.json, "not_removed") > 0) return pruned;
  HSTUJIT_ASSIGN_OR_RETURN(const Report listed, report_of(&hstujit_cache_list, context));
  std::set<std::string> versions;
  for (const Json& kernel : member(listed.json, "kernels")) versions.insert(text_of(kernel, "nvrtc"));
  if (!versions.empty()) {
    print_error(format_printable("no kernel was compiled by NVRTC {}; there are those of {}", options.nvrtc,
                                 fmt::format("{}", fmt::join(versions, ", "))));
  }
  return pruned;
}

}  // namespace

void add_cache(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CacheOptions>();
  CLI::App& cache = *app.add_subcommand("cache", "Look at the cache, check it, bound it");
  cache.require_subcommand(1);

  CLI::App& list = *cache.add_subcommand("ls", "List kernels and tuning records of every cache directory");
  list.add_flag("--shipped", options->shipped, "list the tuning records that are shipped with the library, too");
  add_cache_dir(list, *options);
  add_wide(list, *options);
  add_json(list, *options);
  list.callback([options, &action] {
    action = [options] {
      return report_on_existing(
          *options, [](hstujit_context* c) { return report_of(&hstujit_cache_list, c); },
          options->shipped ? print_whole_list : print_list);
    };
  });

  CLI::App& verify =
      *cache.add_subcommand("verify", "Read every file and name those that no look-up uses; exit 1 for any");
  add_cache_dir(verify, *options);
  add_json(verify, *options);
  verify.callback([options, &action] {
    action = [options] {
      return report_on_existing(
          *options, [](hstujit_context* c) { return report_of(&hstujit_cache_verify, c); }, print_verification);
    };
  });

  CLI::App& prune = *cache.add_subcommand("prune", "Remove kernels: the least recently used, or those of one NVRTC");
  const CLI::Option* const nvrtc =
      prune
          .add_option("--nvrtc", options->nvrtc, "version of NVRTC whose kernels go, such as 12.8; ls --wide shows it")
          ->type_name("VERSION");
  const CLI::Option* const max_bytes =
      prune.add_option("--max-bytes", options->max_bytes, "size to keep, such as 512M; 0 removes all")
          ->type_name("SIZE")
          ->transform(CLI::Validator(size_in_bytes, ""));
  add_cache_dir(prune, *options);
  add_json(prune, *options);
  prune.callback([options, nvrtc, max_bytes, &action] {
    if ((nvrtc->count() > 0) == (max_bytes->count() > 0))
      throw CLI::RequiredError("one of --nvrtc and --max-bytes, and no more,");
    action = [options] {
      const auto call = [&](hstujit_context* c) { return prune_of(*options, c); };
      return report_on_existing(*options, call, print_pruning);
    };
  });

  CLI::App& to_file = *cache.add_subcommand("export", "Pack kernels and tuning records into one file");
  to_file.add_option("FILE", options->file, "the bundle to write, such as kernels.hstujit")->required();
  to_file
      .add_option("--op", options->op,
                  "only entries of this operator, such as hstu_attention; of a program, of its steps' operators")
      ->type_name("OPERATOR");
  add_cache_dir(to_file, *options);
  add_json(to_file, *options);
  to_file.callback([options, &action] { action = [options] { return export_bundle(*options); }; });

  CLI::App& from_file = *cache.add_subcommand("import", "Add what a bundle holds to the cache directory");
  from_file.add_option("FILE", options->file, "a file that export wrote")->required();
  add_cache_dir(from_file, *options);
  add_json(from_file, *options);
  from_file.callback([options, &action] { action = [options] { return import_bundle(*options); }; });

  CLI::App& path = *cache.add_subcommand("path", "Print the cache directory that is written");
  add_cache_dir(path, *options);
  path.callback([options, &action] { action = [options] { return print_path(*options); }; });
}

}  // namespace hstujit
