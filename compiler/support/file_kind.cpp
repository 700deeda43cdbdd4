#include "compiler/support/file_kind.h"

namespace hstujit {

FileKind file_kind(std::string_view bytes) {
  constexpr std::string_view kZstdFrame = "\x28\xb5\x2f\xfd", kTar = "ustar";
  constexpr size_t kTarPlace = 257;
  bytes = bytes.substr(0, kFileKindBytes);
  if (bytes.starts_with(kZstdFrame)) return FileKind::kBundle;
  if (bytes.size() > kTarPlace && bytes.substr(kTarPlace).starts_with(kTar)) return FileKind::kBundle;
  // It is the first member of what the library writes.
  if (bytes.starts_with('{') && bytes.find(kChoicesFormat) != std::string_view::npos) return FileKind::kChoices;
  return FileKind::kOther;
}

std::string_view describe(FileKind kind) {
  switch (kind) {
    case FileKind::kOther:
      return "";
    case FileKind::kBundle:
      return "a bundle of hstujit cache export";
    case FileKind::kChoices:
      return "a file of hstujit freeze";
  }
  return "";
}

}  // namespace hstujit
