#include "autotune_cache/files/cache_layout.h"

#include "autotune_cache/files/cache_key.h"

namespace hstujit {

namespace fs = std::filesystem;

fs::path version_folder(const std::string& root) { return fs::path(root) / "v1"; }

bool is_of_layout(std::string_view name) {
  return is_arch_name(name) || name == tuning_root(kNoRoot).filename().native() ||
         name == choices_root(kNoRoot).filename().native();
}

fs::path artifact_folder(const std::string& root, std::string_view arch, std::string_view digest) {
  return version_folder(root) / arch / digest.substr(0, 2);
}

fs::path tuning_root(const std::string& root) { return version_folder(root) / "tuning"; }

fs::path record_file(const std::string& root, std::string_view digest) {
  return tuning_root(root) / digest.substr(0, 2) / (std::string(digest) + ".json");
}

fs::path choices_root(const std::string& root) { return version_folder(root) / "choices"; }

fs::path choice_file(const std::string& root, std::string_view digest) {
  return choices_root(root) / digest.substr(0, 2) / (std::string(digest) + ".json");
}

bool is_older_than(const FileTime& time, std::chrono::seconds age) { return time < file_time_in(-age); }

}  // namespace hstujit
