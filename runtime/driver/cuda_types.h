// The few types and constants of the CUDA driver API that the runtime uses, declared here so that building needs no
// CUDA toolkit. Layouts and values are the driver's stable ABI; the names are the driver's without their prefix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hstujit::cuda {

using Error = int;
using Device = int;
using DevicePtr = unsigned long long;

struct ContextObject;
struct ModuleObject;
struct FunctionObject;
struct StreamObject;
struct EventObject;
using Context = ContextObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Stream = StreamObject*;
using Event = EventObject*;

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};
static_assert(sizeof(TensorMap) == 128);

inline constexpr Error kSuccess = 0;
inline constexpr Error kErrorOutOfMemory = 2;
inline constexpr Error kErrorNoDevice = 100;
inline constexpr Error kErrorInvalidDevice = 101;
inline constexpr Error kErrorInvalidImage = 200;
inline constexpr Error kErrorNoBinaryForGpu = 209;
inline constexpr Error kErrorNotFound = 500;

enum DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedMemoryPerBlockOptin = 97,
};

enum FunctionAttribute : int {
  kLocalSizeBytes = 3,
  kNumRegisters = 4,
  kMaxDynamicSharedSizeBytes = 8,
  kNonPortableClusterSizeAllowed = 14,
};

enum CaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };
enum CaptureMode : int { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };

enum TensorMapType : int { kTensorMapFloat16 = 6, kTensorMapFloat32 = 7, kTensorMapBfloat16 = 9 };
enum TensorMapInterleave : int { kInterleaveNone = 0 };
enum TensorMapSwizzle : int { kSwizzleNone = 0, kSwizzle32B = 1, kSwizzle64B = 2, kSwizzle128B = 3 };
enum TensorMapPromotion : int { kPromotionL2_256B = 3 };
enum TensorMapFill : int { kFillZeros = 0 };

// cuLaunchKernelEx takes a list of these. The value of the driver's is a union of 64 bytes; a cluster's size is the
// only one in use.
struct LaunchAttribute {
  int id;
  char padding[4];
  unsigned cluster[3];
  char unused[52];
};
inline constexpr int kClusterDimension = 4;
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_memory;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventDisableTiming = 2;

}  // namespace hstujit::cuda
