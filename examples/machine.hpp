// Memory and streams of a GPU, or of the host: what serve.cpp needs of either.
//
// libcuda is opened when a GPU is asked for. So the example builds without the CUDA toolkit, and runs without a GPU.
#ifndef HSTUJIT_EXAMPLES_MACHINE_HPP
#define HSTUJIT_EXAMPLES_MACHINE_HPP

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

// Memory or a stream, released by whoever is the last to hold it, and before the machine goes.
using Resource = std::shared_ptr<void>;

// Throws std::runtime_error where the driver does not do what is asked.
class Machine {
 public:
  // The first GPU, whose primary context becomes that of the calling thread; or the host.
  explicit Machine(bool gpu) : gpu_(gpu) {
    if (!gpu) return;
    const char* const named = std::getenv("HSTUJIT_CUDA_DRIVER");  // where the library looks for it, too
    library_ = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_NOW);
    if (library_ == nullptr) throw std::runtime_error(std::string("there is no CUDA driver: ") + dlerror());
    find(init_, "cuInit");
    find(device_get_, "cuDeviceGet");
    find(retain_, "cuDevicePrimaryCtxRetain");
    find(push_, "cuCtxPushCurrent_v2");
    find(allocate_, "cuMemAlloc_v2");
    find(free_, "cuMemFree_v2");
    find(allocate_host_, "cuMemAllocHost_v2");
    find(free_host_, "cuMemFreeHost");
    find(create_stream_, "cuStreamCreate");
    find(destroy_stream_, "cuStreamDestroy_v2");
    find(synchronize_, "cuStreamSynchronize");
    find(upload_, "cuMemcpyHtoDAsync_v2");
    find(download_, "cuMemcpyDtoHAsync_v2");
    int device = 0;
    check("cuInit", init_(0));
    check("cuDeviceGet", device_get_(&device, 0));
    check("cuDevicePrimaryCtxRetain", retain_(&context_, device));
    enter();
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  bool gpu() const { return gpu_; }
  // Once in each further thread, whose launches then run in the GPU's context.
  void enter() const {
    if (gpu_) check("cuCtxPushCurrent", push_(context_));
  }

  Resource allocate(std::size_t bytes) const {
    if (!gpu_) return host_memory(bytes);
    Address address = 0;
    check("cuMemAlloc", allocate_(&address, bytes + 1));  // 0 bytes are none
    return {reinterpret_cast<void*>(address),
            [release = free_](void* memory) { release(reinterpret_cast<Address>(memory)); }};
  }
  // Allocates memory of the host. Beside a GPU it is page-locked, so that copies run on their own.
  Resource allocate_host(std::size_t bytes) const {
    if (!gpu_) return host_memory(bytes);
    void* memory = nullptr;
    check("cuMemAllocHost", allocate_host_(&memory, bytes + 1));
    return {memory, free_host_};
  }
  // Null on the host, which needs none.
  Resource make_stream() const {
    if (!gpu_) return {};
    constexpr unsigned kNonBlocking = 1;
    void* stream = nullptr;
    check("cuStreamCreate", create_stream_(&stream, kNonBlocking));
    return {stream, destroy_stream_};
  }

  // Between memory of the host and of the machine, in the order of the stream.
  void upload(const Resource& to, const Resource& from, std::size_t bytes, const Resource& stream) const {
    if (gpu_) {
      check("cuMemcpyHtoDAsync", upload_(reinterpret_cast<Address>(to.get()), from.get(), bytes, stream.get()));
    } else {
      std::memcpy(to.get(), from.get(), bytes);
    }
  }
  void download(const Resource& to, const Resource& from, std::size_t bytes, const Resource& stream) const {
    if (gpu_) {
      check("cuMemcpyDtoHAsync", download_(to.get(), reinterpret_cast<Address>(from.get()), bytes, stream.get()));
    } else {
      std::memcpy(to.get(), from.get(), bytes);
    }
  }
  void wait(const Resource& stream) const {
    if (gpu_) check("cuStreamSynchronize", synchronize_(stream.get()));
  }

 private:
  using Address = unsigned long long;

  static Resource host_memory(std::size_t bytes) {
    constexpr std::size_t kAlignment = 256;  // as the GPU's
    void* const memory = std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
    if (memory == nullptr) throw std::bad_alloc();
    return {memory, std::free};
  }
  template <typename Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(std::string("the CUDA driver has no ") + name);
  }
  static void check(const char* name, int error) {
    if (error != 0) throw std::runtime_error(std::string(name) + " fails with CUDA error " + std::to_string(error));
  }

  const bool gpu_;
  void* library_ = nullptr;  // stays open
  void* context_ = nullptr;
  int (*init_)(unsigned) = nullptr;
  int (*device_get_)(int*, int) = nullptr;
  int (*retain_)(void**, int) = nullptr;
  int (*push_)(void*) = nullptr;
  int (*allocate_)(Address*, std::size_t) = nullptr;
  int (*free_)(Address) = nullptr;
  int (*allocate_host_)(void**, std::size_t) = nullptr;
  int (*free_host_)(void*) = nullptr;
  int (*create_stream_)(void**, unsigned) = nullptr;
  int (*destroy_stream_)(void*) = nullptr;
  int (*synchronize_)(void*) = nullptr;
  int (*upload_)(Address, const void*, std::size_t, void*) = nullptr;
  int (*download_)(void*, Address, std::size_t, void*) = nullptr;
};

#endif
