#include "tools/hstujit/output_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "compiler/support/file_kind.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

class FilesRead {
 public:
  explicit FilesRead(const std::string& output) : output_(output) {}

  void add(std::string_view name, const fs::path& path) {
    std::error_code error;
    if (found_.empty() && fs::equivalent(output_, path, error)) found_ = name;
  }

  // With the files that it names. One that cannot be read is for the command to refuse.
  void add_config(std::string_view name, const fs::path& path) {
    add(name, path);
    const Result<std::string> text = read_file(path, kMaxConfigBytes);
    const Result<Json> json = text.ok() ? parse_json(*text, {.comments = true}) : Result<Json>(text.status());
    if (!json.ok()) return;
    add(fmt::format("the device of {}", name), path.parent_path() / text_member(*json, "device"));
    add_lengths(fmt::format("the lengths of {}", name), *json, path.parent_path());
  }

  void add_variable(const char* name) {
    const char* const value = std::getenv(name);
    for (const std::string& path : split(value == nullptr ? "" : value, ':')) add(name, path);
  }

  Status status() const {
    if (found_.empty()) return {};
    return Status(Code::kInvalidArgument,
                  fmt::format("cannot write {}: it is the file of {}, which would be lost", quote(output_), found_));
  }

 private:
  // {"file": PATH}, wherever it stands.
  void add_lengths(const std::string& name, const Json& json, const fs::path& folder) {
    if (const std::string file = text_member(json, "file"); !file.empty()) add(name, folder / file);
    if (!json.is_structured()) return;
    for (const Json& part : json) add_lengths(name, part, folder);
  }

  const std::string& output_;
  std::string found_;  // what names the input that the output is
};

bool is_report(const std::string& path) {
  const Result<std::string> text = read_file(path, kMaxReportBytes);
  const Result<Json> json = text.ok() ? parse_json(*text, {.depth = kMaxReportDepth}) : Result<Json>(text.status());
  return json.ok() && json->is_object() && json->contains("results");
}

// Checks a file that exists: one of another kind was hardly meant to be replaced.
Status check_kind(const std::string& path, OutputKind kind) {
  HSTUJIT_ASSIGN_OR_RETURN(const FileHead head, read_file_head(path, kFileKindBytes));
  if (head.size == 0) return {};
  const auto check = [&path](bool is_kind, std::string_view name) {
    if (is_kind) return Status();
    return Status(Code::kInvalidArgument,
                  fmt::format("cannot write {}: the existing file is not a {}; name another one, or remove it first",
                              quote(path), name));
  };
  switch (kind) {
    case OutputKind::kBundle:
      return check(file_kind(head.bytes) == FileKind::kBundle, "bundle");
    case OutputKind::kChoices:
      return check(file_kind(head.bytes) == FileKind::kChoices, "file of hstujit freeze");
    case OutputKind::kReport:
      return check(is_report(path), "report of hstujit bench");
    case OutputKind::kPage:
      return check(head.bytes.find(R"(content="hstujit report")") != std::string::npos, "page of hstujit report");
  }
  return {};
}

}  // namespace

Status refused_output(std::string_view option, const Status& status) {
  const Code code = status.code() == Code::kIo ? Code::kInvalidArgument : status.code();
  return Status(code, status.message()).with_context(std::string(option));
}

Status check_output_file(std::string_view option, const std::string& output, OutputKind kind, const Options& options,
                         const std::string& grid) {
  HSTUJIT_RETURN_IF_ERROR(refused_output(option, check_output(output)));
  if (std::error_code error; !fs::exists(output, error)) return {};
  FilesRead read(output);
  read.add_config("--config", options.config);
  read.add_config("--grid", grid);
  read.add("--arch", options.arch);
  read.add_variable("HSTUJIT_FROZEN");
  read.add_variable("HSTUJIT_CACHE_PATH");
  HSTUJIT_RETURN_IF_ERROR(refused_output(option, read.status()));
  return refused_output(option, check_kind(output, kind));
}

}  // namespace hstujit
