#include "compiler/emit/launcher_support.h"

namespace hstujit {

const std::string_view kLauncherSupport = R"cuda(
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <vector>

#define CHECK(call)                                                                                    \
  do {                                                                                                 \
    const cudaError_t error_ = (call);                                                                 \
    if (error_ != cudaSuccess) {                                                                       \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));  \
      std::exit(1);                                                                                    \
    }                                                                                                  \
  } while (false)

constexpr int64_t kLargestCount = 268435456;  // of sequences, and of their rows: positions are int

// The batch: B sequences of random lengths up to max_seq_len, with L rows in all.
struct Batch {
  int64_t max_seq_len = 0;
  std::vector<int64_t> offsets{0};
  int64_t rows() const { return offsets.back(); }
  int64_t sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  // `max` targets for each sequence, but no more than it has rows.
  std::vector<int64_t> targets(int64_t max) const {
    std::vector<int64_t> counts;
    for (size_t i = 1; i < offsets.size(); ++i) counts.push_back(std::min(max, offsets[i] - offsets[i - 1]));
    return counts;
  }
  // Where the last rows of each sequence begin among those of all, and how many there are: `max`, or all it has.
  std::vector<int64_t> query_offsets(int64_t max) const {
    std::vector<int64_t> result{0};
    for (size_t i = 1; i < offsets.size(); ++i)
      result.push_back(result.back() + std::min(max, offsets[i] - offsets[i - 1]));
    return result;
  }
  // Where share `i` of `n` of each sequence's rows begins among those of all, and how many there are.
  std::vector<int64_t> shared_offsets(int64_t i, int64_t n) const {
    std::vector<int64_t> result{0};
    for (size_t b = 1; b < offsets.size(); ++b) {
      const int64_t length = offsets[b] - offsets[b - 1];
      result.push_back(result.back() + length * (i + 1) / n - length * i / n);
    }
    return result;
  }
};

// The count that an argument of the program says; 0 for what is none.
static int64_t read_count(const char* text) {
  char* end = nullptr;
  const long long count = std::strtoll(text, &end, 10);
  return end != text && *end == '\0' && count >= 1 && count <= kLargestCount ? count : 0;
}

static std::mt19937_64 generator(1);

[[maybe_unused]] static Batch make_batch(int64_t sequences, int64_t max_seq_len) {
  Batch batch;
  batch.max_seq_len = max_seq_len;
  std::uniform_int_distribution<int64_t> length(max_seq_len / 5, max_seq_len);
  for (int64_t i = 0; i < sequences; ++i) batch.offsets.push_back(batch.offsets.back() + length(generator));
  return batch;
}

[[maybe_unused]] static uint16_t to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// For |value| in [2^-14, 65504]; smaller ones become zero.
[[maybe_unused]] static uint16_t to_fp16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude < 0x38800000) return static_cast<uint16_t>(sign);
  const uint32_t rebased = magnitude - 0x38000000;
  return static_cast<uint16_t>(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
}

// As elements of T; integers only.
template <typename T>
static std::vector<T> convert(const std::vector<int64_t>& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <typename T>
static T* upload(const std::vector<T>& values) {
  T* data = nullptr;
  CHECK(cudaMalloc(&data, std::max<size_t>(values.size(), 1) * sizeof(T)));
  CHECK(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return data;
}

template <typename T, typename Convert>
static T* random_tensor(int64_t elements, Convert convert) {
  std::vector<T> values(static_cast<size_t>(elements));
  std::uniform_real_distribution<float> value(-1.0f, 1.0f);
  for (T& v : values) v = convert(value(generator));
  return upload(values);
}

// Tensor map whose axes have these sizes and strides, in elements, and boxes; the innermost one comes first.
template <size_t rank>
[[maybe_unused]] static TensorMap encode_map(void* data, CUtensorMapDataType type, int element_bytes,
                                             const int64_t (&sizes)[rank], const int64_t (&strides)[rank],
                                             const cuuint32_t (&box)[rank], CUtensorMapSwizzle swizzle) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
#else
  CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    std::fprintf(stderr, "the driver has no cuTensorMapEncodeTiled: it must be 12.0 or newer\n");
    std::exit(1);
  }
  alignas(64) CUtensorMap map;
  cuuint64_t extents[rank], bytes[rank];
  cuuint32_t steps[rank];
  for (size_t i = 0; i < rank; ++i) {
    extents[i] = static_cast<cuuint64_t>(sizes[i]);
    bytes[i] = static_cast<cuuint64_t>(strides[i] * element_bytes);
    steps[i] = 1;
  }
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map, type, rank, data, extents, bytes + 1, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled failed with %d\n", static_cast<int>(result));
    std::exit(1);
  }
  TensorMap encoded;
  static_assert(sizeof encoded == sizeof map, "a tensor map is 128 bytes");
  std::memcpy(&encoded, &map, sizeof map);
  return encoded;
}

[[maybe_unused]] static int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// `blocks` of them, in clusters of `size`.
[[maybe_unused]] static cudaLaunchConfig_t cluster_config(int64_t blocks, int64_t size, int threads,
                                                         size_t shared_memory, cudaLaunchAttribute* attribute) {
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim.x = static_cast<unsigned>(size);
  attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_memory;
  config.attrs = attribute;
  config.numAttrs = 1;
  return config;
}

// How many CTAs share a tile, as a cluster: as many as let the clusters of all tiles be resident at once, at most
// `max`, and no more than have `min` of `rows` each.
template <typename Kernel>
[[maybe_unused]] static int64_t cluster_size(Kernel* kernel, int threads, size_t shared_memory, int64_t tiles,
                                             int64_t rows, int64_t min, int64_t max) {
  constexpr int64_t kPortable = 8;  // every device that has clusters runs this many blocks in one
  constexpr cudaFuncAttribute kAllowed = cudaFuncAttributeNonPortableClusterSizeAllowed;
  if (max > kPortable && cudaFuncSetAttribute(kernel, kAllowed, 1) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    max = kPortable;
  }
  int64_t largest = 1;
  for (int64_t size = 2; size <= std::min(max, rows / min); ++size) {
    cudaLaunchAttribute attribute = {};
    const cudaLaunchConfig_t config = cluster_config(size, size, threads, shared_memory, &attribute);
    int clusters = 0;
    if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      break;
    }
    if (clusters >= tiles) largest = size;
  }
  return largest;
}
)cuda";

}  // namespace hstujit
