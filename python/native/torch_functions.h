// The functions of PyTorch's stable C interface that this library calls. They are declared in
// torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h of PyTorch 2.10 and later, and found by name
// in the libraries that the process has loaded. So building this needs no PyTorch, and one file serves every version.
// tests/python/test_torch_native.py compares the types below with the headers of the PyTorch that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hstujit/dlpack.h"

struct AtenTensorOpaque;
using AtenTensorHandle = AtenTensorOpaque*;  // owned: whoever has one deletes it
struct StringOpaque;
using StringHandle = StringOpaque*;
struct StableListOpaque;
using StableListHandle = StableListOpaque*;
struct DeviceGuardOpaque;
using DeviceGuardHandle = DeviceGuardOpaque*;
class TorchLibraryOpaque;
using TorchLibraryHandle = TorchLibraryOpaque*;
using AOTITorchError = std::int32_t;
using StableIValue = std::uint64_t;

// Data types, those of most calls first: a constant of this PyTorch, code and bits of DLPack. Codes from 10 on are
// those of DLPack 1.1, which its header here does not name yet.
#define HSTUJIT_TORCH_DATA_TYPES(X)               \
  X(aoti_torch_dtype_bfloat16, kDLBfloat, 16)     \
  X(aoti_torch_dtype_float32, kDLFloat, 32)       \
  X(aoti_torch_dtype_float16, kDLFloat, 16)       \
  X(aoti_torch_dtype_int64, kDLInt, 64)           \
  X(aoti_torch_dtype_int32, kDLInt, 32)           \
  X(aoti_torch_dtype_float64, kDLFloat, 64)       \
  X(aoti_torch_dtype_int16, kDLInt, 16)           \
  X(aoti_torch_dtype_int8, kDLInt, 8)             \
  X(aoti_torch_dtype_uint8, kDLUInt, 8)           \
  X(aoti_torch_dtype_uint16, kDLUInt, 16)         \
  X(aoti_torch_dtype_uint32, kDLUInt, 32)         \
  X(aoti_torch_dtype_uint64, kDLUInt, 64)         \
  X(aoti_torch_dtype_bool, kDLBool, 8)            \
  X(aoti_torch_dtype_complex32, kDLComplex, 32)   \
  X(aoti_torch_dtype_complex64, kDLComplex, 64)   \
  X(aoti_torch_dtype_complex128, kDLComplex, 128) \
  X(aoti_torch_dtype_float8_e4m3fn, 10, 8)        \
  X(aoti_torch_dtype_float8_e4m3fnuz, 11, 8)      \
  X(aoti_torch_dtype_float8_e5m2, 12, 8)          \
  X(aoti_torch_dtype_float8_e5m2fnuz, 13, 8)

// Constants, whose functions have no arguments.
#define HSTUJIT_TORCH_CONSTANTS(X) \
  HSTUJIT_TORCH_DATA_TYPES(X)      \
  X(aoti_torch_device_type_cpu)    \
  X(aoti_torch_device_type_cuda)

// Name and arguments; the result of each is an AOTITorchError, 0 where it went well.
#define HSTUJIT_TORCH_FUNCTIONS(X)                                                                                 \
  X(aoti_torch_get_dim, (AtenTensorHandle, std::int64_t*))                                                         \
  X(aoti_torch_get_sizes, (AtenTensorHandle, std::int64_t**))                                                      \
  X(aoti_torch_get_strides, (AtenTensorHandle, std::int64_t**))                                                    \
  X(aoti_torch_get_dtype, (AtenTensorHandle, std::int32_t*))                                                       \
  X(aoti_torch_get_device_type, (AtenTensorHandle, std::int32_t*))                                                 \
  X(aoti_torch_get_device_index, (AtenTensorHandle, std::int32_t*))                                                \
  X(torch_get_const_data_ptr, (AtenTensorHandle, const void**))                                                    \
  X(torch_get_mutable_data_ptr, (AtenTensorHandle, void**))                                                        \
  X(aoti_torch_empty_strided, (std::int64_t, const std::int64_t*, const std::int64_t*, std::int32_t, std::int32_t, \
                               std::int32_t, AtenTensorHandle*))                                                   \
  X(aoti_torch__reinterpret_tensor,                                                                                \
    (AtenTensorHandle, std::int64_t, const std::int64_t*, const std::int64_t*, std::int64_t, AtenTensorHandle*))   \
  X(aoti_torch_copy_, (AtenTensorHandle, AtenTensorHandle, std::int32_t))                                          \
  X(aoti_torch_item_int64, (AtenTensorHandle, std::int64_t*))                                                      \
  X(aoti_torch_delete_tensor_object, (AtenTensorHandle))                                                           \
  X(torch_string_length, (StringHandle, std::size_t*))                                                             \
  X(torch_string_c_str, (StringHandle, const char**))                                                              \
  X(torch_delete_string, (StringHandle))                                                                           \
  X(torch_new_list_reserve_size, (std::size_t, StableListHandle*))                                                 \
  X(torch_list_size, (StableListHandle, std::size_t*))                                                             \
  X(torch_list_get_item, (StableListHandle, std::size_t, StableIValue*))                                           \
  X(torch_list_push_back, (StableListHandle, StableIValue))                                                        \
  X(torch_delete_list, (StableListHandle))                                                                         \
  X(aoti_torch_get_current_device_index, (std::int32_t*))                                                          \
  X(aoti_torch_create_device_guard, (std::int32_t, DeviceGuardHandle*))                                            \
  X(aoti_torch_delete_device_guard, (DeviceGuardHandle))                                                           \
  X(aoti_torch_library_init_def, (const char*, const char*, std::uint32_t, TorchLibraryHandle*))                   \
  X(aoti_torch_library_def, (TorchLibraryHandle, const char*))                                                     \
  X(aoti_torch_library_init_impl, (const char*, const char*, const char*, std::uint32_t, TorchLibraryHandle*))     \
  X(torch_library_impl,                                                                                            \
    (TorchLibraryHandle, const char*, void (*)(StableIValue*, std::uint64_t, std::uint64_t), std::uint64_t))

// Functions of libtorch_cuda and of the CUDA runtime that it is linked to, which a PyTorch without CUDA has not; and
// what later versions have.
#define HSTUJIT_TORCH_OPTIONAL_FUNCTIONS(X)                     \
  X(cudaSetDevice, (int))                                       \
  X(cudaStreamIsCapturing, (void*, std::int32_t*))              \
  X(aoti_torch_is_defined, (AtenTensorHandle, bool*))           \
  X(aoti_torch_get_current_cuda_stream, (std::int32_t, void**)) \
  X(torch_delete_stable_ivalue, (StableIValue*)) /* since 2.13 */

namespace hstujit::torch {

struct Functions {
#define HSTUJIT_MEMBER(name, ...) std::int32_t (*name)() = nullptr;
  HSTUJIT_TORCH_CONSTANTS(HSTUJIT_MEMBER)
#undef HSTUJIT_MEMBER
#define HSTUJIT_MEMBER(name, arguments) AOTITorchError(*name) arguments = nullptr;
  HSTUJIT_TORCH_FUNCTIONS(HSTUJIT_MEMBER)
  HSTUJIT_TORCH_OPTIONAL_FUNCTIONS(HSTUJIT_MEMBER)
#undef HSTUJIT_MEMBER
  // Prints a warning, as PyTorch's own are printed.
  void (*aoti_torch_warn)(const char* function, const char* file, std::uint32_t line, const char* text) = nullptr;
  // at::globalContext() and two functions of at::Context, which the stable interface lacks.
  void* (*global_context)() = nullptr;
  bool (*deterministic_algorithms)(const void* context) = nullptr;
  bool (*deterministic_algorithms_warn_only)(const void* context) = nullptr;
};

}  // namespace hstujit::torch
