// The boundary of libhstujit_bundle.so, which decompresses bundles: opened for one that is a zstd frame, never before.
//
// A frame is decompressed twice, for its size and then into memory of the caller, so that it takes as much memory as
// the bytes do and not what a growing buffer would. Both functions return a value of hstujit::Code and write one
// sentence to `error`, which is empty for kOk. The library has nothing of the generator, so it reports no digest.
#pragma once

#include <cstddef>

#define HSTUJIT_BUNDLE_ABI 1

#pragma GCC visibility push(default)  // all else in the library is hidden
extern "C" {
int hstujit_bundle_abi(void);
// The number of bytes that the frame decompresses to.
int hstujit_bundle_size(const void* frame, size_t frame_size, size_t* size, char* error, size_t error_size);
// Writes these bytes; `size` is the number that hstujit_bundle_size gave.
int hstujit_bundle_decompress(const void* frame, size_t frame_size, void* bytes, size_t size, char* error,
                              size_t error_size);
}
#pragma GCC visibility pop
