#include "autotune_cache/bundle/library/zstd_frame.h"

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

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
    if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation)
      return Status(Code::kOutOfMemory, "there is no memory for its zstd frame");
    if (ZSTD_isError(left) != 0)
      return Status(Code::kIo, fmt::format("its zstd frame is damaged: {}", ZSTD_getErrorName(left)));
    used += output.pos;
    if (used > most)
      return Status(Code::kIo, fmt::format("its zstd frame of {} bytes unpacks to more than {}", frame.size(), most));
    if (left != 0 && input.pos == input.size && output.pos < output.size)
      return Status(Code::kIo, fmt::format("its zstd frame ends early, after {} bytes", frame.size()));
  }
  if (input.pos != input.size)
    return Status(Code::kIo,
                  fmt::format("{} {} its zstd frame", counted(static_cast<int64_t>(input.size - input.pos), "byte"),
                              input.size - input.pos == 1 ? "follows" : "follow"));
  return used;
}

}  // namespace

Result<size_t> zstd_size(std::string_view frame) {
  std::vector<char> piece(ZSTD_DStreamOutSize());
  return decompress_into(frame, [&](size_t) { return std::span(piece); });
}

Status decompress_zstd(std::string_view frame, std::span<char> bytes) {
  HSTUJIT_ASSIGN_OR_RETURN(const size_t size, decompress_into(frame, [&](size_t used) { return bytes.subspan(used); }));
  if (size == bytes.size()) return {};
  return Status(Code::kInvalidArgument,
                fmt::format("the size is {}; the zstd frame unpacks to {} bytes", bytes.size(), size));
}

}  // namespace hstujit

// The archive of zstd may have decoders of its formats before 0.8, which no frame with the magic of today has. Their
// entries are defined here, ahead of the archive: 73 KiB of code that hostile bytes must not reach are left out. They
// are weak, so that whoever links the archive whole has its own.
#define HSTUJIT_NO_LEGACY_ZSTD(version)                                                            \
  HSTUJIT_LEGACY size_t ZSTDv##version##_decompress_usingDict() { return kUnsupported; }           \
  HSTUJIT_LEGACY size_t ZSTDv##version##_getFrameParams() { return kUnsupported; }                 \
  HSTUJIT_LEGACY size_t ZSTDv##version##_freeDCtx() { return kUnsupported; }                       \
  HSTUJIT_LEGACY size_t ZBUFFv##version##_decompressInitDictionary() { return kUnsupported; }      \
  HSTUJIT_LEGACY size_t ZBUFFv##version##_decompressContinue() { return kUnsupported; }            \
  HSTUJIT_LEGACY size_t ZBUFFv##version##_freeDCtx() { return kUnsupported; }                      \
  HSTUJIT_LEGACY void* ZSTDv##version##_createDCtx() { return nullptr; }                           \
  HSTUJIT_LEGACY void* ZBUFFv##version##_createDCtx() { return nullptr; }                          \
  HSTUJIT_LEGACY void ZSTDv##version##_findFrameSizeInfoLegacy(const void*, size_t, size_t* frame, \
                                                               unsigned long long* bound) {        \
    *frame = kUnsupported;                                                                         \
    *bound = 0;                                                                                    \
  }
#define HSTUJIT_LEGACY __attribute__((weak, visibility("hidden")))

extern "C" {

static constexpr auto kUnsupported = static_cast<size_t>(-ZSTD_error_version_unsupported);

HSTUJIT_NO_LEGACY_ZSTD(05)
HSTUJIT_NO_LEGACY_ZSTD(06)
HSTUJIT_NO_LEGACY_ZSTD(07)
}
