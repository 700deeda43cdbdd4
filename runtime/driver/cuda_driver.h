// The CUDA driver, opened when the first CUDA op needs it. Nothing links against libcuda: a machine without it can
// still build kernels, read the cache and run the host backend.
#pragma once

#include <memory>
#include <string>

#include "compiler/support/status.h"
#include "runtime/driver/cuda_types.h"

namespace hstujit {

// Every driver function in use: member name, exported symbol, parameter types. All of them return cuda::Error.
#define HSTUJIT_CUDA_FUNCTIONS(X)                                                                                \
  X(init, cuInit, (unsigned))                                                                                    \
  X(driver_get_version, cuDriverGetVersion, (int*))                                                              \
  X(get_error_name, cuGetErrorName, (cuda::Error, const char**))                                                 \
  X(get_error_string, cuGetErrorString, (cuda::Error, const char**))                                             \
  X(device_get_count, cuDeviceGetCount, (int*))                                                                  \
  X(device_get, cuDeviceGet, (cuda::Device*, int))                                                               \
  X(device_get_name, cuDeviceGetName, (char*, int, cuda::Device))                                                \
  X(device_get_attribute, cuDeviceGetAttribute, (int*, cuda::DeviceAttribute, cuda::Device))                     \
  X(primary_context_retain, cuDevicePrimaryCtxRetain, (cuda::Context*, cuda::Device))                            \
  X(primary_context_release, cuDevicePrimaryCtxRelease_v2, (cuda::Device))                                       \
  X(context_get_current, cuCtxGetCurrent, (cuda::Context*))                                                      \
  X(context_get_device, cuCtxGetDevice, (cuda::Device*))                                                         \
  X(context_push, cuCtxPushCurrent_v2, (cuda::Context))                                                          \
  X(context_pop, cuCtxPopCurrent_v2, (cuda::Context*))                                                           \
  X(module_load_data, cuModuleLoadData, (cuda::Module*, const void*))                                            \
  X(module_unload, cuModuleUnload, (cuda::Module))                                                               \
  X(module_get_function, cuModuleGetFunction, (cuda::Function*, cuda::Module, const char*))                      \
  X(function_get_attribute, cuFuncGetAttribute, (int*, cuda::FunctionAttribute, cuda::Function))                 \
  X(function_set_attribute, cuFuncSetAttribute, (cuda::Function, cuda::FunctionAttribute, int))                  \
  X(launch_kernel, cuLaunchKernel,                                                                               \
    (cuda::Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cuda::Stream, void**, \
     void**))                                                                                                    \
  X(mem_alloc, cuMemAlloc_v2, (cuda::DevicePtr*, size_t))                                                        \
  X(mem_free, cuMemFree_v2, (cuda::DevicePtr))                                                                   \
  X(mem_get_info, cuMemGetInfo_v2, (size_t*, size_t*))                                                           \
  X(copy_to_device, cuMemcpyHtoD_v2, (cuda::DevicePtr, const void*, size_t))                                     \
  X(copy_to_host, cuMemcpyDtoH_v2, (void*, cuda::DevicePtr, size_t))                                             \
  X(copy_on_device, cuMemcpyDtoDAsync_v2, (cuda::DevicePtr, cuda::DevicePtr, size_t, cuda::Stream))              \
  X(set_bytes, cuMemsetD8Async, (cuda::DevicePtr, unsigned char, size_t, cuda::Stream))                          \
  X(stream_create, cuStreamCreate, (cuda::Stream*, unsigned))                                                    \
  X(stream_destroy, cuStreamDestroy_v2, (cuda::Stream))                                                          \
  X(stream_synchronize, cuStreamSynchronize, (cuda::Stream))                                                     \
  X(stream_is_capturing, cuStreamIsCapturing, (cuda::Stream, cuda::CaptureStatus*))                              \
  X(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (cuda::CaptureMode*))                       \
  X(event_create, cuEventCreate, (cuda::Event*, unsigned))                                                       \
  X(event_destroy, cuEventDestroy_v2, (cuda::Event))                                                             \
  X(event_record, cuEventRecord, (cuda::Event, cuda::Stream))                                                    \
  X(event_query, cuEventQuery, (cuda::Event))                                                                    \
  X(event_synchronize, cuEventSynchronize, (cuda::Event))                                                        \
  X(event_elapsed, cuEventElapsedTime, (float*, cuda::Event, cuda::Event))

// In drivers from 12.0 on; null in older ones.
#define HSTUJIT_CUDA_OPTIONAL_FUNCTIONS(X)                                                                          \
  X(context_get_id, cuCtxGetId, (cuda::Context, unsigned long long*))                                               \
  X(stream_get_id, cuStreamGetId, (cuda::Stream, unsigned long long*))                                              \
  X(launch_kernel_ex, cuLaunchKernelEx, (const cuda::LaunchConfig*, cuda::Function, void**, void**))                \
  X(occupancy_max_active_clusters, cuOccupancyMaxActiveClusters, (int*, cuda::Function, const cuda::LaunchConfig*)) \
  X(tensor_map_encode_tiled, cuTensorMapEncodeTiled,                                                                \
    (cuda::TensorMap*, cuda::TensorMapType, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,     \
     const uint32_t*, cuda::TensorMapInterleave, cuda::TensorMapSwizzle, cuda::TensorMapPromotion,                  \
     cuda::TensorMapFill))                                                                                          \
  X(tensor_map_replace_address, cuTensorMapReplaceAddress, (cuda::TensorMap*, void*))

class CudaDriver {
 public:
  // Opens `path`, or "libcuda.so.1" as the loader finds it when that is empty, and initialises the driver.
  // The library stays loaded for the life of the process: contexts and modules outlive any handle.
  // kNoDriver: no library, or one that lacks a function. kNoDevice: the driver works and finds no GPU.
  static Result<std::shared_ptr<const CudaDriver>> open(const std::string& path);

  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  const std::string& path() const { return path_; }  // as it was asked for
  int version() const { return version_; }           // 13000 for CUDA 13.0

  // "CUDA_ERROR_INVALID_VALUE (invalid argument)".
  std::string describe(cuda::Error error) const;
  // The failure of `expression` at `file`:`line`, in the driver's own words.
  Status failure(cuda::Error error, const char* expression, const char* file, int line) const;

#define HSTUJIT_DECLARE(member, symbol, parameters) cuda::Error(*member) parameters = nullptr;
  HSTUJIT_CUDA_FUNCTIONS(HSTUJIT_DECLARE)
  HSTUJIT_CUDA_OPTIONAL_FUNCTIONS(HSTUJIT_DECLARE)
#undef HSTUJIT_DECLARE

 private:
  CudaDriver() = default;

  std::string path_;
  int version_ = 0;
};

using CudaDriverPtr = std::shared_ptr<const CudaDriver>;

}  // namespace hstujit

// Calls a driver function and returns its failure from the calling function:
//     HSTUJIT_CUDA_CHECK(driver, mem_alloc(&pointer, bytes));
#define HSTUJIT_CUDA_CHECK(driver, call)                                            \
  do {                                                                              \
    if (const ::hstujit::cuda::Error cuda_error_ = (driver).call; cuda_error_ != 0) \
      return (driver).failure(cuda_error_, #call, __FILE__, __LINE__);              \
  } while (false)
