#include "operations/tuning/timing/ceilings.h"

#include <algorithm>
#include <memory>
#include <random>

#include "compiler/support/dynamic_library.h"
#include "operations/tuning/timing/candidate_bench.h"

namespace hstujit {

namespace {

constexpr size_t kCopyBytes = size_t{1} << 30;
constexpr int kRepeats = 9;
constexpr int kSize = 8192;

// The part of cuBLAS in use.
using BlasHandle = void*;
using BlasCreate = int(BlasHandle*);
using BlasDestroy = int(BlasHandle);
using BlasSetStream = int(BlasHandle, cuda::Stream);
using BlasGemm = int(BlasHandle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                     const void*, void*, int, int, int, int);
constexpr int kNoTranspose = 0;
constexpr int kBf16 = 14;         // CUDA_R_16BF
constexpr int kComputeFp32 = 68;  // CUBLAS_COMPUTE_32F
constexpr int kDefaultAlgorithm = -1;

// Figures recorded on 2026-11-20 with CUDA 13.0, for machines without cuBLAS.
struct Recorded {
  const char* device;
  double flops_per_s;
};
constexpr Recorded kRecorded[] = {{"NVIDIA H200", 760e12}};

// Either sign, magnitude in [0.5, 1), every bit of the mantissa random.
std::vector<uint16_t> random_bf16(size_t count) {
  constexpr uint16_t kSignAndMantissa = 0x807f;
  constexpr uint16_t kOneHalf = 0x3f00;
  std::mt19937_64 random(1);
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values) value = static_cast<uint16_t>((random() & kSignAndMantissa) | kOneHalf);
  return values;
}

Result<double> measure_copy(const CudaDriverPtr& driver, DeviceTimer& timer) {
  HSTUJIT_ASSIGN_OR_RETURN(DeviceBuffer source, DeviceBuffer::allocate(driver, kCopyBytes));
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceBuffer target, DeviceBuffer::allocate(driver, kCopyBytes));
  HSTUJIT_RETURN_IF_ERROR(source.fill(1, timer.stream()));
  const LaunchFunction copy = [&](cuda::Stream stream) -> Status {
    HSTUJIT_CUDA_CHECK(*driver, copy_on_device(target.pointer(), source.pointer(), kCopyBytes, stream));
    return {};
  };
  HSTUJIT_ASSIGN_OR_RETURN(const auto samples, timer.time({copy}, kRepeats));
  return 2.0 * static_cast<double>(kCopyBytes) / (summarise(samples[0]).median_ms * 1e-3);
}

Result<double> measure_matmul(const CudaDriverPtr& driver, DeviceTimer& timer, std::string* source) {
  HSTUJIT_ASSIGN_OR_RETURN(
      const DynamicLibrary library,
      DynamicLibrary::open("cuBLAS", {"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so"},
                           Code::kNotFound, DynamicLibrary::Keep::kForever));
  HSTUJIT_ASSIGN_OR_RETURN(BlasCreate* const create, library.function<BlasCreate>("cublasCreate_v2"));
  HSTUJIT_ASSIGN_OR_RETURN(BlasDestroy* const destroy, library.function<BlasDestroy>("cublasDestroy_v2"));
  HSTUJIT_ASSIGN_OR_RETURN(BlasSetStream* const set_stream, library.function<BlasSetStream>("cublasSetStream_v2"));
  HSTUJIT_ASSIGN_OR_RETURN(BlasGemm* const gemm, library.function<BlasGemm>("cublasGemmEx"));

  BlasHandle raw = nullptr;
  if (create(&raw) != 0) return Status(Code::kDriverError, "cublasCreate failed");
  const std::unique_ptr<void, BlasDestroy*> handle(raw, destroy);
  if (set_stream(handle.get(), timer.stream()) != 0) return Status(Code::kDriverError, "cublasSetStream failed");
  constexpr size_t kBytes = size_t{2} * kSize * kSize;
  HSTUJIT_ASSIGN_OR_RETURN(DeviceBuffer a, DeviceBuffer::allocate(driver, kBytes));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceBuffer b, DeviceBuffer::allocate(driver, kBytes));
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceBuffer c, DeviceBuffer::allocate(driver, kBytes));
  // Random data: a product of constants draws less power and runs some 12 % faster than any real one.
  const std::vector<uint16_t> random = random_bf16(size_t{kSize} * kSize);
  HSTUJIT_RETURN_IF_ERROR(a.upload(random.data(), kBytes));
  HSTUJIT_RETURN_IF_ERROR(b.upload(random.data(), kBytes));
  const float one = 1;
  const float zero = 0;
  const LaunchFunction product = [&](cuda::Stream) -> Status {
    const int error = gemm(handle.get(), kNoTranspose, kNoTranspose, kSize, kSize, kSize, &one, a.data(), kBf16, kSize,
                           b.data(), kBf16, kSize, &zero, c.data(), kBf16, kSize, kComputeFp32, kDefaultAlgorithm);
    return error == 0 ? Status() : Status(Code::kDriverError, "cublasGemmEx failed");
  };
  HSTUJIT_ASSIGN_OR_RETURN(const auto samples, timer.time({product}, kRepeats));
  *source = "measured with " + library.name();
  return 2.0 * kSize * kSize * kSize / (summarise(samples[0]).median_ms * 1e-3);
}

}  // namespace

Result<Ceilings> measure_ceilings(const CudaDriverPtr& driver, const DeviceSpec& device, DeviceTimer& timer) {
  Ceilings ceilings;
  HSTUJIT_ASSIGN_OR_RETURN(ceilings.copy_bytes_per_s, measure_copy(driver, timer));
  const Result<double> matmul = measure_matmul(driver, timer, &ceilings.matmul_source);
  if (matmul.ok()) {
    ceilings.matmul_flops_per_s = *matmul;
    return ceilings;
  }
  const auto* const recorded = std::find_if(std::begin(kRecorded), std::end(kRecorded),
                                            [&](const Recorded& entry) { return device.name == entry.device; });
  if (recorded != std::end(kRecorded)) {
    ceilings.matmul_flops_per_s = recorded->flops_per_s;
    ceilings.matmul_source = "recorded on 2026-11-20, not measured in this run: " + matmul.status().message();
  } else {
    ceilings.matmul_source = "unknown: " + matmul.status().message();
  }
  return ceilings;
}

}  // namespace hstujit
