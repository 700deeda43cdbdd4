#include "tests/fakes/fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "runtime/driver/cuda_types.h"

namespace cuda = hstujit::cuda;

#define EXPORT extern "C" __attribute__((visibility("default")))
#define FAIL_IF_ASKED()                                                                             \
  if (const char* name = fake_cuda()->failing; name != nullptr && std::strcmp(name, __func__) == 0) \
  return fake_cuda()->error

namespace {

// Bytes of one copy or fill. No test looks at more; ceilings (operations/tuning/timing/ceilings.h) are of a GiB, which
// is only timed, so that little of it is moved.
constexpr size_t kMostMoved = size_t{256} << 20, kMovedOfMore = size_t{1} << 20;
size_t moved(size_t bytes) { return bytes > kMostMoved ? kMovedOfMore : bytes; }

// A kernel that was found in a module.
struct FakeFunction {
  std::string name;
  void* module;
};

// Modules that are loaded, and all functions that were ever found. A module is its number.
struct Modules {
  std::mutex mutex;
  uintptr_t count = 0;
  std::set<void*> loaded;
  std::deque<FakeFunction> functions;
};

Modules& modules() {
  static Modules all;
  return all;
}

// One context per thread's stack of at most eight; any address will do.
int primary_context = 0;
thread_local void* stack[8];
thread_local int depth = 0;

}  // namespace

FakeCuda* fake_cuda() {
  static FakeCuda state;
  return &state;
}
int fake_cuda_launches() { return fake_cuda()->launches; }
void* fake_cuda_stream() { return fake_cuda()->stream; }

EXPORT int cuInit(unsigned) {
  FAIL_IF_ASKED();
  return 0;
}
EXPORT int cuDriverGetVersion(int* version) {
  FAIL_IF_ASKED();
  *version = 13000;
  return 0;
}
EXPORT int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_FAKE";
  return 0;
}
EXPORT int cuGetErrorString(int, const char** text) {
  *text = "as the test asked";
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
  FAIL_IF_ASKED();
  *count = fake_cuda()->devices;
  return 0;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
  FAIL_IF_ASKED();
  *device = ordinal;
  return 0;
}
EXPORT int cuDeviceGetName(char* name, int size, int) {
  FAIL_IF_ASKED();
  std::strncpy(name, "Fake GPU", size);
  return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  FAIL_IF_ASKED();
  switch (attribute) {
    case 16:
      *value = fake_cuda()->multiprocessors;
      break;
    case 38:
      *value = 50 << 20;
      break;
    case 39:
      *value = 2048;
      break;
    case 75:
      *value = fake_cuda()->major;
      break;
    case 76:
      *value = fake_cuda()->minor;
      break;
    case 82:
      *value = 65536;
      break;
    case 97:
      *value = 232448;
      break;
    default:
      *value = 0;
  }
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int) {
  FAIL_IF_ASKED();
  *context = &primary_context;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
EXPORT int cuCtxGetCurrent(void** context) {
  FAIL_IF_ASKED();
  *context = depth > 0 ? stack[depth - 1] : nullptr;
  return 0;
}
EXPORT int cuCtxGetDevice(int* device) {
  FAIL_IF_ASKED();
  *device = 0;
  return 0;
}
EXPORT int cuCtxGetId(void* context, unsigned long long* id) {
  FAIL_IF_ASKED();
  *id = reinterpret_cast<unsigned long long>(context) + fake_cuda()->contexts_destroyed;
  return 0;
}
EXPORT int cuCtxPushCurrent_v2(void* context) {
  FAIL_IF_ASKED();
  stack[depth++] = context;
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(void** context) {
  *context = stack[--depth];
  return 0;
}
EXPORT int cuModuleLoadData(void** module, const void* image) {
  FAIL_IF_ASKED();
  constexpr int kNoBinaryForGpu = 209;
  const char* const refused = fake_cuda()->refused_image;
  if (refused != nullptr && std::strncmp(static_cast<const char*>(image), refused, std::strlen(refused)) == 0) {
    return kNoBinaryForGpu;
  }
  ++fake_cuda()->module_loads;
  const std::lock_guard<std::mutex> lock(modules().mutex);
  *module = reinterpret_cast<void*>(++modules().count);
  modules().loaded.insert(*module);
  return 0;
}
EXPORT int cuModuleUnload(void* module) {
  ++fake_cuda()->module_unloads;
  const std::lock_guard<std::mutex> lock(modules().mutex);
  modules().loaded.erase(module);
  return 0;
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  FAIL_IF_ASKED();
  const char* const lacking = fake_cuda()->lacking;
  constexpr int kNotFound = 500;
  if (lacking != nullptr && std::strcmp(lacking, name) == 0) return kNotFound;
  const std::lock_guard<std::mutex> lock(modules().mutex);
  *function = &modules().functions.emplace_back(FakeFunction{name, module});
  return 0;
}
EXPORT int cuFuncGetAttribute(int* value, int, void*) {
  *value = 0;
  return 0;
}
EXPORT int cuFuncSetAttribute(void*, int, int) {
  FAIL_IF_ASKED();
  return 0;
}
// Arguments of the last launch; launches come from several threads.
static std::mutex& last_launch() {
  static std::mutex mutex;
  return mutex;
}
static void record(const FakeStep& step) {
  FakeCuda& state = *fake_cuda();
  if (state.step_count < FakeCuda::kSteps) state.steps[state.step_count++] = step;
}
static int launched(const void* launched_function, unsigned grid, unsigned cluster, unsigned threads, unsigned shared,
                    void** parameters) {
  FakeCuda& state = *fake_cuda();
  const auto& function = *static_cast<const FakeFunction*>(launched_function);
  {
    const std::lock_guard<std::mutex> lock(modules().mutex);
    if (!modules().loaded.contains(function.module)) ++state.unloaded_launches;
  }
  const std::lock_guard<std::mutex> lock(last_launch());
  FakeStep step = {"", grid, threads, shared, 0, 0, 0};
  std::strncpy(step.kernel, function.name.c_str(), sizeof(step.kernel) - 1);
  record(step);
  const int number = ++state.launches;
  const bool writes = state.unsteady_from > 0 && number >= state.unsteady_from;
  for (unsigned i = 0; writes && i < state.poisoned_count; ++i) {
    *reinterpret_cast<unsigned char*>(state.poisoned[i]) = static_cast<unsigned char>(number);
  }
  state.poisoned_count = 0;
  if (state.arriving > 0) ++state.races;
  state.grid = grid;
  state.cluster = cluster;
  state.threads = threads;
  state.shared_memory = shared;
  std::memcpy(state.parameters, parameters[0], sizeof(state.parameters));
  return 0;
}
EXPORT int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                          unsigned shared, void* stream, void** parameters, void**) {
  FAIL_IF_ASKED();
  fake_cuda()->stream = stream;
  return launched(function, grid, 1, threads, shared, parameters);
}
EXPORT int cuLaunchKernelEx(const cuda::LaunchConfig* config, void* function, void** parameters, void**) {
  FAIL_IF_ASKED();
  fake_cuda()->stream = config->stream;
  return launched(function, config->grid[0], config->attributes->cluster[0], config->block[0], config->shared_memory,
                  parameters);
}
EXPORT int cuOccupancyMaxActiveClusters(int* clusters, void*, const cuda::LaunchConfig* config) {
  FAIL_IF_ASKED();
  // Eight groups of 16 multiprocessors, one block on each: the clusters of a group.
  const int size = static_cast<int>(config->attributes->cluster[0]);
  *clusters = size <= fake_cuda()->largest_cluster ? 8 * (16 / size) : 0;
  return 0;
}
// "Device" memory is host memory.
EXPORT int cuMemAlloc_v2(unsigned long long* pointer, size_t bytes) {
  FAIL_IF_ASKED();
  constexpr size_t kAlignment = 256;
  const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  *pointer = reinterpret_cast<unsigned long long>(std::aligned_alloc(kAlignment, whole));
  return 0;
}
EXPORT int cuMemFree_v2(unsigned long long pointer) {
  std::free(reinterpret_cast<void*>(pointer));
  return 0;
}
EXPORT int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  *free_bytes = 1;
  *total = 2;
  return 0;
}
EXPORT int cuMemcpyHtoD_v2(unsigned long long target, const void* source, size_t bytes) {
  FAIL_IF_ASKED();
  std::memcpy(reinterpret_cast<void*>(target), source, bytes);
  ++fake_cuda()->arriving;
  return 0;
}
EXPORT int cuMemcpyDtoH_v2(void* target, unsigned long long source, size_t bytes) {
  FAIL_IF_ASKED();
  std::memcpy(target, reinterpret_cast<void*>(source), bytes);
  return 0;
}
EXPORT int cuMemAllocHost_v2(void** memory, size_t bytes) {
  FAIL_IF_ASKED();
  *memory = std::malloc(bytes);
  return 0;
}
EXPORT int cuMemFreeHost(void* memory) {
  std::free(memory);
  return 0;
}
EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long target, const void* source, size_t bytes, void*) {
  FAIL_IF_ASKED();
  std::memcpy(reinterpret_cast<void*>(target), source, bytes);
  return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void* target, unsigned long long source, size_t bytes, void*) {
  FAIL_IF_ASKED();
  std::memcpy(target, reinterpret_cast<void*>(source), bytes);
  return 0;
}
EXPORT int cuMemcpyDtoDAsync_v2(unsigned long long target, unsigned long long source, size_t bytes, void*) {
  FAIL_IF_ASKED();
  std::memcpy(reinterpret_cast<void*>(target), reinterpret_cast<void*>(source), moved(bytes));
  return 0;
}
EXPORT int cuMemsetD8Async(unsigned long long pointer, unsigned char byte, size_t bytes, void*) {
  FAIL_IF_ASKED();
  {
    const std::lock_guard<std::mutex> lock(last_launch());
    record({"", 0, 0, 0, pointer, byte, bytes});
    FakeCuda& state = *fake_cuda();
    constexpr unsigned char kPoison = 0xFF;
    if (byte == kPoison && bytes > 0 && state.poisoned_count < FakeCuda::kPoisoned) {
      state.poisoned[state.poisoned_count++] = pointer;
    }
  }
  std::memset(reinterpret_cast<void*>(pointer), byte, moved(bytes));
  return 0;
}
EXPORT int cuStreamCreate(void** stream, unsigned) {
  FAIL_IF_ASKED();
  *stream = fake_cuda();
  return 0;
}
EXPORT int cuStreamDestroy_v2(void*) { return 0; }
EXPORT int cuStreamSynchronize(void* stream) {
  FAIL_IF_ASKED();
  if (stream == nullptr) fake_cuda()->arriving = 0;
  return 0;
}
EXPORT int cuStreamIsCapturing(void*, int* status) {
  *status = fake_cuda()->capturing;
  return 0;
}
// A stream is identified by its address.
EXPORT int cuStreamGetId(void* stream, unsigned long long* id) {
  FAIL_IF_ASKED();
  *id = reinterpret_cast<unsigned long long>(stream);
  return 0;
}
EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int current = 0;
  constexpr int kRelaxed = 2;
  fake_cuda()->relaxed += (*mode == kRelaxed) - (current == kRelaxed);
  std::swap(*mode, current);
  return 0;
}
EXPORT int cuEventCreate(void** event, unsigned) {
  FAIL_IF_ASKED();
  *event = fake_cuda();
  return 0;
}
EXPORT int cuEventDestroy_v2(void*) { return 0; }
EXPORT int cuEventRecord(void*, void*) { return 0; }
EXPORT int cuEventQuery(void*) {
  FAIL_IF_ASKED();
  constexpr int kNotReady = 600;
  return fake_cuda()->pending != 0 ? kNotReady : 0;
}
EXPORT int cuEventSynchronize(void*) {
  FAIL_IF_ASKED();
  return 0;
}
EXPORT int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1.5f;
  return 0;
}
// The fake keeps only the address of a map, in its first bytes.
EXPORT int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address, const uint64_t* dimensions,
                                  const uint64_t* strides, const uint32_t* box, const uint32_t*, int, int swizzle, int,
                                  int) {
  FAIL_IF_ASKED();
  // As the driver does.
  constexpr int kInvalidValue = 1;
  if (address == nullptr || reinterpret_cast<uintptr_t>(address) % 16 != 0) return kInvalidValue;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dimensions[i] == 0 || (i > 0 && strides[i - 1] % 16 != 0)) return kInvalidValue;
  }
  FakeCuda& state = *fake_cuda();
  const std::lock_guard<std::mutex> lock(last_launch());
  ++state.tensor_maps;
  state.map_type = type;
  state.map_rank = rank;
  state.swizzle = swizzle;
  std::copy_n(dimensions, rank, state.dimensions);
  std::copy_n(strides, rank - 1, state.strides);
  std::copy_n(box, rank, state.box);
  std::memcpy(map, &address, sizeof(address));
  return 0;
}
EXPORT int cuTensorMapReplaceAddress(void* map, void* address) {
  FAIL_IF_ASKED();
  ++fake_cuda()->replaced_addresses;
  std::memcpy(map, &address, sizeof(address));
  return 0;
}
