#include "autotune_cache/files/checked_json.h"

#include <fmt/format.h>

#include "compiler/support/hash.h"
#include "compiler/support/json.h"
#include "compiler/support/private_json.h"
#include "compiler/support/text.h"

namespace hstujit {

Result<std::string> format_checked_json(Json object, size_t max_bytes) {
  const std::string format = text_member(object, "format");
  const auto unread = [&format](const std::string& problem) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("a file of the format {} cannot be written so that it is read again: {}", quote(format), problem));
  };
  // Through text once, so that the checksum is of what a reader will see, and is counted by its limits.
  object["checksum"] = "";
  Result<Json> read = parse_json(dump_json(object));
  if (!read.ok() && read.status().code() == Code::kOutOfMemory) return read.status();
  if (!read.ok()) return unread(read.status().message());
  object = std::move(read).value();
  object.erase("checksum");
  object["checksum"] = sha256_hex(dump_json(object));
  std::string text = dump_json(object, 2) + '\n';
  if (text.size() > max_bytes) text = dump_json(object) + '\n';
  if (text.size() > max_bytes)
    return unread(fmt::format("it has {} bytes, and at most {} are read", text.size(), max_bytes));
  return text;
}

Result<Json> parse_checked_json(std::string_view text, std::string_view format, std::string* checksum) {
  Result<Json> parsed = parse_private_json(text);
  if (!parsed.ok() && parsed.status().code() == Code::kOutOfMemory) return parsed.status();
  if (!parsed.ok()) return Status(Code::kIo, parsed.status().message());
  if (!parsed->is_object()) return Status(Code::kIo, "it is no JSON object");
  Json object = std::move(parsed).value();
  // Shows nothing of the file: it may be any file of this user.
  if (text_member(object, "format") != format)
    return Status(Code::kIo, fmt::format("its format is not {}", quote(format)));
  std::string said = text_member(object, "checksum");
  object.erase("checksum");
  if (said != sha256_hex(dump_json(object))) return Status(Code::kIo, "its checksum differs");
  if (checksum != nullptr) *checksum = std::move(said);
  return object;
}

}  // namespace hstujit
