#include "autotune_cache/bundle.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>

#include "autotune_cache/checked_json.h"
#include "autotune_cache/tar.h"
#include "compiler/support/hash.h"
#include "compiler/support/memory.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

constexpr const char* kManifest = "hstujit-bundle.json";
constexpr const char* kBundleFormat = "hstujit-bundle-1";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

Result<std::string> decompress(std::string_view frame) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (context == nullptr) return Status(Code::kOutOfMemory, "the host's memory is used up");
  ZSTD_inBuffer input = {frame.data(), frame.size(), 0};
  const size_t max = std::min(kMaxBundleBytes, kMaxUnpackedBytes + kMaxUnpackedTimes * frame.size());
  std::string bytes;
  size_t used = 0;
  while (true) {
    if (used > max)
      return Status(Code::kIo, fmt::format("its zstd frame of {} bytes unpacks to more than {}", frame.size(), max));
    bytes.resize(used + (used / 2) + ZSTD_DStreamOutSize());
    ZSTD_outBuffer output = {bytes.data(), bytes.size(), used};
    const size_t left = ZSTD_decompressStream(context.get(), &output, &input);
    if (ZSTD_isError(left) != 0)
      return Status(Code::kIo, fmt::format("its zstd frame is damaged: {}", ZSTD_getErrorName(left)));
    used = output.pos;
    if (left == 0) break;
    if (input.pos == input.size && output.pos < output.size)
      return Status(Code::kIo, fmt::format("its zstd frame ends early, after {} bytes", frame.size()));
  }
  if (input.pos != input.size)
    return Status(Code::kIo, fmt::format("{} bytes follow its zstd frame", input.size - input.pos));
  bytes.resize(used);
  return bytes;
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
  HSTUJIT_RETURN_IF_ERROR(append_to_tar(packed.bytes, kManifest, format_checked_json(manifest)));
  packed.bytes += contents;
  return packed;
}

Result<std::shared_ptr<const Bundle>> Bundle::unpack(std::string bytes) {
  return within_memory("its contents", [&]() -> Result<std::shared_ptr<const Bundle>> {
    const std::shared_ptr<Bundle> bundle(new Bundle);
    if (bytes.starts_with(kZstdMagic)) {
      HSTUJIT_ASSIGN_OR_RETURN(bundle->tar_, decompress(bytes));
    } else {
      bundle->tar_ = std::move(bytes);
    }
    HSTUJIT_RETURN_IF_ERROR(bundle->read());
    return std::shared_ptr<const Bundle>(bundle);
  });
}

Status Bundle::read() {
  HSTUJIT_ASSIGN_OR_RETURN(const std::vector<TarEntry> entries, read_tar(tar_));
  if (entries.empty() || entries.front().name != kManifest)
    return Status(Code::kIo, fmt::format("its first file is not {}", kManifest));
  const TarEntry& first = entries.front();
  const Result<Json> manifest = parse_checked_json(first.bytes, kBundleFormat);
  if (!manifest.ok()) return manifest.status().with_context(kManifest);
  sha256_ = text_member(*manifest, "sha256");
  const int64_t size = integer_member(*manifest, "bytes", -1);
  const std::string_view contents = std::string_view(tar_).substr(first.end);
  if (static_cast<int64_t>(contents.size()) != size) {
    return Status(Code::kIo, fmt::format("its contents have {} bytes, and {} says {}", contents.size(), kManifest,
                                         size < 0 ? "no size" : fmt::to_string(size)));
  }
  if (const std::string digest = sha256_hex(contents); digest != sha256_)
    return Status(Code::kIo,
                  fmt::format("the SHA-256 of its contents is {}, and {} says {}", digest, kManifest, sha256_));
  const int64_t count = integer_member(*manifest, "files", -1);
  if (static_cast<int64_t>(entries.size()) - 1 != count) {
    return Status(Code::kIo, fmt::format("its tar archive has {} files after {}, which says {}", entries.size() - 1,
                                         kManifest, count < 0 ? "no count" : fmt::to_string(count)));
  }
  for (size_t i = 1; i < entries.size(); ++i) {
    if (!files_.emplace(entries[i].name, entries[i].bytes).second)
      return Status(Code::kIo, fmt::format("its tar archive has {} twice", quote(entries[i].name)));
  }
  return {};
}

}  // namespace hstujit
