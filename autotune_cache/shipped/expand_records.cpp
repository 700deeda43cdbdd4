// Run at build time: expand_records OUT FILE... writes the records of FILE..., one on each line, to the folder OUT as a
// cache directory has them (cache_layout.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "autotune_cache/files/cache_layout.h"
#include "autotune_cache/files/checked_json.h"
#include "autotune_cache/records/tuning_key_json.h"
#include "autotune_cache/records/tuning_record.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"

namespace hstujit {
namespace {

Status expand(std::string_view line, const std::string& out) {
  HSTUJIT_ASSIGN_OR_RETURN(Json record, parse_json(line));
  const auto key = record.find("key");
  if (key == record.end()) return Status(Code::kIo, "it has no key");
  const std::string digest = tuning_digest(tuning_key_from(*key));
  HSTUJIT_RETURN_IF_ERROR(parse_record(line, digest).status());
  const std::filesystem::path file = record_file(out, digest);
  if (std::filesystem::exists(file)) return Status(Code::kIo, "an earlier line has the same key");
  HSTUJIT_RETURN_IF_ERROR(make_directories(file.parent_path()));
  record.erase("checksum");
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, format_checked_json(std::move(record), kMaxRecordBytes));
  return write_file_atomically(file, text);
}

Status expand_file(const std::string& path, const std::string& out) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxRecordBytes));
  int number = 1;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1, ++number) {
    end = std::min(text.find('\n', begin), text.size());
    const Status status = expand(std::string_view(text).substr(begin, end - begin), out);
    if (!status.ok()) return Status(status.code(), fmt::format("{}:{}: {}", path, number, status.message()));
  }
  return {};
}

}  // namespace
}  // namespace hstujit

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: %s OUT FILE...\n", arguments[0]);
    return 2;
  }
  for (int i = 2; i < count; ++i) {
    const hstujit::Status status = hstujit::expand_file(arguments[i], arguments[1]);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  return 0;
}
