#include "compiler/support/kept_files.h"

#include <algorithm>
#include <vector>

#include "compiler/support/files.h"
#include "compiler/support/hash.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/trust.h"

namespace hstujit {

namespace {

constexpr size_t kDigits = 64;  // of the digest that stands before a value
constexpr mode_t kForThisUser = 0700;

}  // namespace

Result<Folder> KeptFiles::open() const {
  HSTUJIT_ASSIGN_OR_RETURN(Folder folder, Folder::open(folder_, Trust::kOwn));
  std::string reason = distrust(folder.info());
  if (reason.empty()) reason = distrust_of_place(folder_);
  if (!reason.empty()) return Status(Code::kIo, reason);
  return folder;
}

std::optional<std::string> KeptFiles::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const Result<Folder> folder = open();
  if (!folder.ok()) return std::nullopt;
  const Result<std::string> bytes = folder->read(key, kMaxCubinBytes);
  if (!bytes.ok() || bytes->size() < kDigits) return std::nullopt;
  std::string value = bytes->substr(kDigits);
  if (sha256_hex(value) != bytes->substr(0, kDigits)) return std::nullopt;
  folder->touch(key);
  return value;
}

void KeptFiles::keep(const std::string& key, std::string_view value) const {
  if (folder_.empty() || !make_directories(folder_, kForThisUser).ok()) return;
  const Result<Folder> folder = open();
  if (!folder.ok()) return;
  static_cast<void>(folder->write(key, sha256_hex(value) + std::string(value)));
  make_room(*folder);
}

void KeptFiles::make_room(const Folder& folder) const {
  const Result<std::vector<std::string>> names = folder.names();
  if (!names.ok() || names->size() <= max_files_) return;
  std::vector<std::pair<FileTime, const std::string*>> files;
  for (const std::string& name : *names) {
    const Result<FileInfo> info = folder.look(name);
    if (info.ok() && !info->is_folder) files.emplace_back(info->written, &name);
  }
  if (files.size() <= max_files_) return;
  std::sort(files.begin(), files.end());
  files.resize(files.size() - max_files_ * 3 / 4);
  for (const auto& [written, name] : files) static_cast<void>(folder.remove(*name));
}

}  // namespace hstujit
