// Compresses bundles, and decompresses them by the code of libhstujit_bundle.so, linked into the test.
#pragma once

#include <zstd.h>

#include <string>
#include <string_view>

#include "autotune_cache/bundle/library/zstd_frame.h"

namespace hstujit {

inline std::string compressed(const std::string& bytes) {
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), 3));
  return frame;
}

inline Result<std::string> linked_decoder(std::string_view frame) {
  HSTUJIT_ASSIGN_OR_RETURN(const size_t size, zstd_size(frame));
  std::string bytes(size, '\0');
  HSTUJIT_RETURN_IF_ERROR(decompress_zstd(frame, bytes));
  return bytes;
}

}  // namespace hstujit
