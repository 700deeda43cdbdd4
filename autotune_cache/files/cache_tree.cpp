#include "autotune_cache/files/cache_tree.h"

#include <fmt/format.h>

#include "compiler/support/files.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnerOnly = 0700;
constexpr int kFolderAttempts = 16;  // to write into a folder that somebody removes meanwhile, again and again

void walk_folder(const Folder& folder, const fs::path& name, int levels,
                 const std::function<bool(std::string_view)>& wanted,
                 const std::function<void(const CacheItem&)>& visit) {
  const auto names = folder.names();
  if (!names.ok()) {
    if (names.status().code() != Code::kNotFound) visit({name, names.status(), {}, true});
    return;
  }
  const bool of_folders = levels > 0;
  for (const std::string& entry : *names) {
    if (wanted && !wanted(entry)) continue;
    const auto found = folder.look(entry);
    if (!found.ok()) {
      if (found.status().code() != Code::kNotFound)
        visit({name / entry, found.status(), {}, of_folders && folder.has_folder_or_link(entry)});
    } else if (!found->is_folder) {
      visit({name / entry, {}, *found});
    } else if (levels == 0) {
      visit({name / entry, Status(Code::kIo, "it is a folder, in the place of a file"), {}});
    } else if (const auto inner = folder.folder(entry); inner.ok()) {
      walk_folder(*inner, name / entry, levels - 1, nullptr, visit);
    } else if (inner.status().code() != Code::kNotFound) {
      visit({name / entry, inner.status(), {}, true});
    }
  }
}

}  // namespace

CacheTree::CacheTree(std::string root, Trust trust, Log log)
    : root_(std::move(root)), trust_(trust), log_(std::move(log)) {}

void CacheTree::log_once(std::string_view event, const fs::path& path, const Status& status) const {
  {
    const std::lock_guard lock(mutex_);
    if (!logged_.emplace(event, path.native()).second) return;
  }
  log_.event(LogCategory::kCache, event, {{"path", path.native()}, {"reason", status.message()}});
}

std::string CacheTree::distrust_of_root(const Result<Folder>& root) const {
  if (trust_ == Trust::kAll) return {};
  if (!root.ok()) return root.status().code() == Code::kNotFound ? distrust_of_place(root_) : std::string();
  if (std::string own = distrust(root->info()); !own.empty()) return own;
  const std::pair<dev_t, ino_t> identity = {root->info().st_dev, root->info().st_ino};
  {
    const std::lock_guard lock(mutex_);
    if (placed_ == identity) return place_;
  }
  std::string place = distrust_of_place(root_);
  const std::lock_guard lock(mutex_);
  placed_ = identity;
  place_ = place;
  return place;
}

Result<Folder> CacheTree::open_root() const {
  Result<Folder> root = Folder::open(root_, trust_);
  const std::string problem = distrust_of_root(root);
  if (problem.empty()) return root;
  return Status(Code::kIo, fmt::format("the cache {} is neither read nor written: {}", quote(root_), problem));
}

Status CacheTree::problem() const {
  const auto root = Folder::open(root_, trust_);
  std::string problem = distrust_of_root(root);
  if (!problem.empty()) return Status(Code::kIo, std::move(problem));
  return root.status().code() == Code::kNotFound ? Status() : root.status();
}

Status CacheTree::health() const {
  Status status = open_root().status();
  if (status.code() == Code::kNotFound) return {};
  if (!status.ok()) log_once("directory_not_used", root_, status);
  return status;
}

Result<Folder> CacheTree::reach(const fs::path& name, fs::path* reached) const {
  *reached = root_;
  Result<Folder> folder = open_root();
  for (auto part = name.begin(); folder.ok() && part != name.end(); ++part) {
    *reached /= *part;
    Result<Folder> inner = folder->folder(part->native());
    folder = std::move(inner);
  }
  return folder;
}

Result<Folder> CacheTree::open(const fs::path& name) const {
  fs::path reached;
  Result<Folder> folder = reach(name, &reached);
  if (!folder.ok() && folder.status().code() != Code::kNotFound)
    log_once("directory_not_used", reached, folder.status());
  return folder;
}

Result<Folder> CacheTree::make_once(const fs::path& name) const {
  const Status made = make_directories(root_, kOwnerOnly);
  Result<Folder> folder = made.ok() ? open_root() : Result<Folder>(made);
  for (auto part = name.begin(); folder.ok() && part != name.end(); ++part) {
    Result<Folder> inner = folder->make_folder(part->native());
    folder = std::move(inner);
  }
  return folder;
}

Result<Folder> CacheTree::make(const fs::path& name) const {
  Result<Folder> folder = open(name);  // which logs what is no kNotFound
  if (folder.ok() || folder.status().code() != Code::kNotFound) return folder;
  for (int attempt = 0; attempt < kFolderAttempts && folder.status().code() == Code::kNotFound; ++attempt) {
    Result<Folder> made = make_once(name);
    folder = std::move(made);
  }
  if (!folder.ok()) log_once("directory_not_writable", root_, folder.status());
  return folder;
}

Status CacheTree::change(const fs::path& name, const std::function<Status(const Folder&)>& write) const {
  Status status;
  for (int attempt = 0; attempt < kFolderAttempts; ++attempt) {
    HSTUJIT_ASSIGN_OR_RETURN(const Folder folder, make(name));  // which logs a failure
    status = write(folder);
    if (status.code() != Code::kNotFound) break;
  }
  if (!status.ok()) log_once("directory_not_writable", root_, status);
  return status;
}

void CacheTree::walk(const fs::path& folder, int levels, const std::function<bool(std::string_view)>& wanted,
                     const std::function<void(const CacheItem&)>& visit) const {
  if (!health().ok()) {
    visit({".", problem(), {}, true});
    return;
  }
  fs::path reached;
  const auto opened = reach(folder, &reached);
  if (opened.ok()) {
    walk_folder(*opened, folder, levels, wanted, visit);
  } else if (opened.status().code() != Code::kNotFound) {
    visit({reached.lexically_relative(root_), opened.status(), {}, true});
  }
}

}  // namespace hstujit
