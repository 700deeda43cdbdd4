// The boundary of libhstujit_host.so: the host backend, opened only when that backend is asked for.
//
// create: request {"spec": {...}, "direction": "forward", "threads": 0 (all), "objects": "<folder>"} -> handle, or
// null with one sentence in `error`. Machine code is kept in the folder and found there by later processes
// (compiler/support/kept_files.h); without one, nothing is kept.
// launch: one HstujitHostValue per signature argument, in order; runs to completion. Returns a value of hstujit::Code.
#pragma once

#include <cstddef>
#include <cstdint>

#define HSTUJIT_HOST_ABI 3
#define HSTUJIT_HOST_MAX_OBJECTS 2048  // files in "objects"; the machine code of a kernel takes some 30 KB

#pragma GCC visibility push(default)  // all else in the library is hidden
extern "C" {
typedef struct HstujitHostValue {
  void* data;              // tensors: first element; dtype as the signature says
  const int64_t* shape;    // tensors
  const int64_t* strides;  // tensors, in elements
  int rank;                // 0 for scalars
  double real;             // kFloat arguments
  int64_t integer;         // kInt arguments
} HstujitHostValue;

int hstujit_host_abi(void);
// The digest of the generator in this library (compiler/generator/generator_digest.h). A caller that has another must
// not use this library: specs would have other fields, and kernels other results.
const char* hstujit_host_generator(void);
void* hstujit_host_create(const char* request_json, char* error, size_t error_size);
int hstujit_host_launch(void* kernel, const HstujitHostValue* values, size_t count, char* error, size_t error_size);
void hstujit_host_destroy(void* kernel);
}
#pragma GCC visibility pop
