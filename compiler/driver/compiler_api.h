// The boundary of libhstujit_compiler.so: what the runtime calls after dlopen, on a cache miss only.
//
// C functions and JSON text, so that neither side shares C++ types or allocators with the other.
// Request: {"command": "compile"|"emit", "spec": {...}, "direction": "forward", "config": {...}, "device": {...},
//           "options": {"lineinfo": bool, "nvrtc": "path of libnvrtc or empty"}},
// or {"command": "nvrtc", "options": {...}}, which compiles nothing and says which NVRTC a compile would use.
// Output blobs, by name: "ir" (MLIR text), "source" (CUDA), "launcher" (emit: a main() for plain nvcc),
// "cubin", "log", "resources" (JSON: registers, spill_load_bytes, spill_store_bytes, stack_bytes, static_shared_bytes,
// nvrtc "13.0", compile_ms), "nvrtc" (JSON: path, version, archs it compiles for, [90, 100]), "error" (one sentence).
// Returns a value of hstujit::Code.
#pragma once

#include <cstddef>

#define HSTUJIT_COMPILER_ABI 2

#pragma GCC visibility push(default)  // all else in the library is hidden
extern "C" {
typedef void (*hstujit_blob_sink)(void* context, const char* name, const void* data, size_t size);
int hstujit_compiler_abi(void);
// The digest of the generator in this library (compiler/generator/generator_digest.h). Cache keys hold the caller's:
// one that has another must not use this library, or it would keep cubins under keys of sources that they were not made
// of.
const char* hstujit_compiler_generator(void);
int hstujit_compiler_run(const char* request_json, void* context, hstujit_blob_sink sink);
}
#pragma GCC visibility pop
