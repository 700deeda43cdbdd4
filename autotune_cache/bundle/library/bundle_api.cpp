// The C boundary: codes and sentences out. No exception leaves it.
#include "autotune_cache/bundle/library/bundle_api.h"

#include <span>
#include <string_view>

#include "autotune_cache/bundle/library/zstd_frame.h"
#include "compiler/support/c_boundary.h"

namespace {

using hstujit::Status;

constexpr const char* kName = "the bundle library";

std::string_view text_of(const void* frame, size_t size) { return {static_cast<const char*>(frame), size}; }

}  // namespace

extern "C" {

int hstujit_bundle_abi(void) { return HSTUJIT_BUNDLE_ABI; }

int hstujit_bundle_size(const void* frame, size_t frame_size, size_t* size, char* error, size_t error_size) {
  return hstujit::guarded_call(kName, error, error_size, [&]() -> Status {
    HSTUJIT_ASSIGN_OR_RETURN(*size, hstujit::zstd_size(text_of(frame, frame_size)));
    return {};
  });
}

int hstujit_bundle_decompress(const void* frame, size_t frame_size, void* bytes, size_t size, char* error,
                              size_t error_size) {
  return hstujit::guarded_call(kName, error, error_size, [&] {
    return hstujit::decompress_zstd(text_of(frame, frame_size), std::span(static_cast<char*>(bytes), size));
  });
}
}
