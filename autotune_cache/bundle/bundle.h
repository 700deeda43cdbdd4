// Bundles: cubins with their metadata and tuning records in one file, to be carried to other machines.
//
// Invariants: a ustar archive, as it is or as one zstd frame. Its first file, "hstujit-bundle.json", is a checked JSON
// object that says how many bytes follow it and their SHA-256; the others are the files of a cache directory under the
// same names, sorted. Nothing in it depends on when, where and by whom it was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "autotune_cache/bundle/bundle_decoder.h"
#include "compiler/support/status.h"

namespace hstujit {

struct PackedBundle {
  std::string bytes;   // the archive, not compressed
  std::string sha256;  // of what follows the manifest: it names the contents
};

// `files`: contents by name.
Result<PackedBundle> pack_bundle(const std::map<std::string, std::string>& files);

// Whether a file of `size` bytes that begins with `head` may be a bundle: kIo with what is wrong when it is none, so
// that nobody reads gigabytes to find that out. kBundleHeadBytes are enough for any.
inline constexpr size_t kBundleHeadBytes = 4096;
Status check_bundle_head(std::string_view head, size_t size);

// A bundle in memory, whose digest was checked.
class Bundle {
 public:
  // kIo with what differs when these bytes, of a file, are no whole bundle; what `decode` says of a zstd frame.
  static Result<std::shared_ptr<const Bundle>> unpack(std::string bytes, const BundleDecoder& decode);

  // Contents by name, without the manifest.
  const std::map<std::string, std::string_view, std::less<>>& files() const { return files_; }
  const std::string& sha256() const { return sha256_; }

 private:
  Bundle() = default;
  Status read();

  std::string tar_;
  std::map<std::string, std::string_view, std::less<>> files_;
  std::string sha256_;
};

}  // namespace hstujit
