// A CUDA driver without a GPU: a shared library that stands where libcuda.so.1 would be (HSTUJIT_CUDA_DRIVER), counts
// what is done with it and fails where a test wants it to.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// Steps that were enqueued, in order.
struct FakeStep {
  char kernel[64];  // "" for a fill
  unsigned grid, threads, shared_memory;
  unsigned long long address;  // of a fill
  unsigned char byte;
  size_t bytes;
};

struct FakeCuda {
  std::atomic<const char*> failing{nullptr};        // name of the function that fails
  std::atomic<int> error{999};                      // with this error
  std::atomic<const char*> refused_image{nullptr};  // an image that begins so is no binary for this GPU
  std::atomic<const char*> lacking{nullptr};        // no module has a function of this name
  std::atomic<int> devices{1};
  std::atomic<int> major{9};
  std::atomic<int> minor{0};
  std::atomic<int> multiprocessors{132};
  std::atomic<int> launches{0};
  std::atomic<int> module_loads{0};
  std::atomic<int> module_unloads{0};
  std::atomic<int> unloaded_launches{0};  // launches of kernels whose module was unloaded
  std::atomic<int> relaxed{0};            // threads that may call what a capture of another thread forbids
  std::atomic<int> pending{0};            // events are not done
  std::atomic<int> largest_cluster{16};
  std::atomic<int> tensor_maps{0};         // encoded
  std::atomic<int> replaced_addresses{0};  // of tensor maps
  std::atomic<int> capturing{0};
  std::atomic<int> arriving{0};  // copies to the device that nobody has waited for
  std::atomic<int> races{0};     // launches while some of them were under way
  // From this launch on, each writes its number, which no other one does, to what was filled with 0xFF since the last.
  std::atomic<int> unsteady_from{0};            // 0: launches write nothing
  std::atomic<unsigned> contexts_destroyed{0};  // each gives the context that follows at its address another identity
  // The first steps since reset().
  static constexpr unsigned kSteps = 16;
  FakeStep steps[kSteps] = {};
  unsigned step_count = 0;
  static constexpr unsigned kPoisoned = 8;
  unsigned long long poisoned[kPoisoned] = {};  // addresses filled with 0xFF since the last launch
  unsigned poisoned_count = 0;
  // The last launch.
  unsigned grid = 0;
  unsigned cluster = 0;  // blocks of a cluster, 1 where the launch says nothing of clusters
  unsigned threads = 0;
  unsigned shared_memory = 0;
  unsigned char parameters[4096] = {};  // Launcher::kMaxParameterBytes
  std::atomic<void*> stream{nullptr};
  // The last tensor map.
  // Of the last map, as far as it has axes.
  uint32_t map_rank = 0;
  uint64_t dimensions[5] = {};
  uint64_t strides[4] = {};  // bytes
  uint32_t box[5] = {};
  int swizzle = 0;
  int map_type = 0;

  void reset() {
    failing = nullptr;
    error = 999;
    refused_image = nullptr;
    lacking = nullptr;
    devices = 1;
    major = 9;
    minor = 0;
    multiprocessors = 132;
    largest_cluster = 16;
    launches = module_loads = module_unloads = unloaded_launches = pending = tensor_maps = replaced_addresses =
        capturing = arriving = races = 0;
    contexts_destroyed = 0;
    unsteady_from = 0;
    step_count = poisoned_count = 0;
  }
};

extern "C" __attribute__((visibility("default"))) FakeCuda* fake_cuda();
// The same for tests in Python.
extern "C" __attribute__((visibility("default"))) int fake_cuda_launches();
extern "C" __attribute__((visibility("default"))) void* fake_cuda_stream();
