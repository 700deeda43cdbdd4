#include "autotune_cache/bundle/bundle.h"

#include <fmt/format.h>

#include <vector>

#include "autotune_cache/bundle/tar.h"
#include "autotune_cache/files/cache_key.h"
#include "autotune_cache/files/checked_json.h"
#include "compiler/support/hash.h"
#include "compiler/support/memory.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

constexpr const char* kManifest = "hstujit-bundle.json";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr const char* kBundleFormat = "hstujit-bundle-1";

bool is_zstd(std::string_view bytes) { return bytes.starts_with(kZstdMagic); }

// The manifest: bytes that follow it and their digest.
struct Manifest {
  int64_t files = -1;  // -1: nothing
  std::string sha256;
  size_t end = 0;  // where what it tells of begins
};

// Reads the manifest of an archive of `size` bytes, of which `head` is the first ones, at least those of the manifest.
Result<Manifest> read_manifest(std::string_view head, size_t size) {
  const Result<TarEntry> first = head.empty() ? Status(Code::kIo, "it is empty") : read_tar_entry(head, 0, size);
  if (!first.ok()) return first.status();
  if (first->name != kManifest) return Status(Code::kIo, fmt::format("its first file is not {}", kManifest));
  const Result<Json> json = parse_checked_json(first->bytes, kBundleFormat);
  if (!json.ok()) return json.status().with_context(kManifest);
  const int64_t bytes = integer_member(*json, "bytes", -1);
  if (static_cast<int64_t>(size - first->end) != bytes) {
    return Status(Code::kIo, fmt::format("its contents have {}, and {} says {}",
                                         counted(static_cast<int64_t>(size - first->end), "byte"), kManifest,
                                         bytes < 0 ? "no size" : fmt::to_string(bytes)));
  }
  return Manifest{integer_member(*json, "files", -1), text_member(*json, "sha256"), first->end};
}

}  // namespace

Result<PackedBundle> pack_bundle(const std::map<std::string, std::string>& files) {
  std::string contents;
  for (const auto& [name, bytes] : files) HSTUJIT_RETURN_IF_ERROR(append_to_tar(contents, name, bytes));
  finish_tar(contents);
  PackedBundle packed;
  packed.sha256 = sha256_hex(contents);
  const Json manifest = {
      {"format", kBundleFormat}, {"files", files.size()}, {"bytes", contents.size()}, {"sha256", packed.sha256}};
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, format_checked_json(manifest, kMaxMetadataBytes));
  HSTUJIT_RETURN_IF_ERROR(append_to_tar(packed.bytes, kManifest, text));
  packed.bytes += contents;
  return packed;
}

Result<std::shared_ptr<const Bundle>> Bundle::unpack(std::string bytes, const BundleDecoder& decode) {
  return within_memory("its contents", [&]() -> Result<std::shared_ptr<const Bundle>> {
    const std::shared_ptr<Bundle> bundle(new Bundle);
    if (is_zstd(bytes)) {
      HSTUJIT_ASSIGN_OR_RETURN(bundle->tar_, decode(bytes));
    } else {
      bundle->tar_ = std::move(bytes);
    }
    HSTUJIT_RETURN_IF_ERROR(bundle->read());
    return std::shared_ptr<const Bundle>(bundle);
  });
}

Status check_bundle_head(std::string_view head, size_t size) {
  return is_zstd(head) ? Status() : read_manifest(head, size).status();
}

Status Bundle::read() {
  HSTUJIT_ASSIGN_OR_RETURN(const Manifest manifest, read_manifest(tar_, tar_.size()));
  HSTUJIT_ASSIGN_OR_RETURN(const std::vector<TarEntry> entries, read_tar(tar_));
  sha256_ = manifest.sha256;
  const std::string_view contents = std::string_view(tar_).substr(manifest.end);
  if (const std::string digest = sha256_hex(contents); digest != sha256_) {
    return Status(Code::kIo, fmt::format("the SHA-256 of its contents is {}, and {} says {}", digest, kManifest,
                                         is_digest(sha256_) ? sha256_ : "none"));
  }
  if (static_cast<int64_t>(entries.size()) - 1 != manifest.files) {
    return Status(Code::kIo, fmt::format("its tar archive has {} after {}, which says {}",
                                         counted(static_cast<int64_t>(entries.size()) - 1, "file"), kManifest,
                                         manifest.files < 0 ? "no count" : fmt::to_string(manifest.files)));
  }
  for (size_t i = 1; i < entries.size(); ++i) {
    if (!files_.emplace(entries[i].name, entries[i].bytes).second)
      return Status(Code::kIo, fmt::format("its tar archive has {} twice", quote(entries[i].name)));
  }
  return {};
}

}  // namespace hstujit
