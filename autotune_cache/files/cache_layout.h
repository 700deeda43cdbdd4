// Where things lie in a cache directory.
//
//     <root>/v1/<arch>/<ab>/<digest>.cubin     compiled code
//     <root>/v1/<arch>/<ab>/<digest>.json      its metadata, written after it
//     <root>/v1/tuning/<ab>/<digest>.json      a tuning record
//     <root>/v1/choices/<ab>/<digest>.json     which config a look-up chose
// <ab> is the digest's first two digits. "v1" changes when the layout does; an older library then sees nothing of it.
// docs/cache-format.md has the guarantees.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "compiler/support/folder.h"

namespace hstujit {

// An interrupted write is given this long before its leftovers count as abandoned.
inline constexpr std::chrono::hours kLeftoverAge{1};

// The root of relative names, such as those in a bundle.
inline constexpr const char* kNoRoot = "";

std::filesystem::path version_folder(const std::string& root);
// Whether a name is of what lies in a version's folder.
bool is_of_layout(std::string_view name);
std::filesystem::path artifact_folder(const std::string& root, std::string_view arch, std::string_view digest);
std::filesystem::path tuning_root(const std::string& root);
std::filesystem::path record_file(const std::string& root, std::string_view digest);
std::filesystem::path choices_root(const std::string& root);
std::filesystem::path choice_file(const std::string& root, std::string_view digest);

// True when `time` is more than `age` ago.
bool is_older_than(const FileTime& time, std::chrono::seconds age);

}  // namespace hstujit
