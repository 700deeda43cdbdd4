#include "autotune_cache/bundle.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <span>
#include <vector>

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

using Decompressor = std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)>;

// Decompresses one frame, from the first call to the last, into what `room` gives: a place for what follows the
// `used` bytes before. Gives the size of all.
template <typename Room>
Result<size_t> decompress_into(std::string_view frame, const Room& room) {
  const Decompressor context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (context == nullptr) return Status(Code::kOutOfMemory, "the host's memory is used up");
  const size_t most = std::min(kMaxBundleBytes, kMaxUnpackedBytes + kMaxUnpackedTimes * frame.size());
  ZSTD_inBuffer input = {frame.data(), frame.size(), 0};
  size_t used = 0, left = 1;
  while (left != 0) {
    const std::span<char> place = room(used);
    ZSTD_outBuffer output = {place.data(), place.size(), 0};
    left = ZSTD_decompressStream(context.get(), &output, &input);
    if (ZSTD_isError(left) != 0)
      return Status(Code::kIo, fmt::format("its zstd frame is damaged: {}", ZSTD_getErrorName(left)));
    used += output.pos;
    if (used > most)
      return Status(Code::kIo, fmt::format("its zstd frame of {} bytes unpacks to more than {}", frame.size(), most));
    if (left != 0 && input.pos == input.size && output.pos < output.size)
      return Status(Code::kIo, fmt::format("its zstd frame ends early, after {} bytes", frame.size()));
  }
  if (input.pos != input.size)
    return Status(Code::kIo, fmt::format("{} bytes follow its zstd frame", input.size - input.pos));
  return used;
}

// Twice, so that it takes as much memory as the bytes do and not what a growing buffer would.
Result<std::string> decompress(std::string_view frame) {
  std::vector<char> piece(ZSTD_DStreamOutSize());
  HSTUJIT_ASSIGN_OR_RETURN(const size_t size, decompress_into(frame, [&](size_t) { return std::span(piece); }));
  std::string bytes(size, '\0');
  HSTUJIT_RETURN_IF_ERROR(decompress_into(frame, [&](size_t used) { return std::span(bytes).subspan(used); }).status());
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
