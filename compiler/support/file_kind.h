// Kinds of files, recognised by their first bytes: for sentences about one that stands where another kind was meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace hstujit {

inline constexpr std::string_view kChoicesFormat = "hstujit-choices-1";  // "format" of a file of hstujit freeze

enum class FileKind {
  kOther,
  kBundle,   // of hstujit cache export, compressed or not
  kChoices,  // of hstujit freeze
};

// How many of the first bytes file_kind() looks at.
inline constexpr size_t kFileKindBytes = 512;

FileKind file_kind(std::string_view bytes);

// "a bundle of hstujit cache export"; empty for kOther.
std::string_view describe(FileKind kind);

}  // namespace hstujit
