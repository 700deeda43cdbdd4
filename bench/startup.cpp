// Start-up and launch cost of one instance in this process: what a framework that already uses CUDA pays for its first
// call.
//
//     bench_startup CACHE_DIRECTORY        prints one line of JSON:
//                                          {"prepare_ms", "first_call_ms", "launch_us", "empty_launch_us"}
//
// The last is what the driver alone takes for a kernel that has no parameters and does nothing.
// Run twice with the same directory: empty it shows a cold key (one compile), filled a new process with a warm disk.
// bench/run_gpu.sh does both several times.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "compiler/support/dynamic_library.h"
#include "hstujit/hstujit.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr const char* kInstance =
    R"({"op": "hstu_attention", "heads": 4, "attn_dim": 128, "hidden_dim": 128, "num_targets": true})";
constexpr int64_t kRows = 256, kSequences = 4, kHeads = 4, kDim = 128, kMaxSeqLen = 1024;

// The few driver calls that a framework would have made already.
struct Cuda {
  explicit Cuda(const hstujit::DynamicLibrary& library)
      : init(lookup<int(unsigned)>(library, "cuInit")),
        retain(lookup<int(void**, int)>(library, "cuDevicePrimaryCtxRetain")),
        set_current(lookup<int(void*)>(library, "cuCtxSetCurrent")),
        allocate(lookup<int(unsigned long long*, size_t)>(library, "cuMemAlloc_v2")),
        fill(lookup<int(unsigned long long, unsigned char, size_t)>(library, "cuMemsetD8_v2")),
        upload(lookup<int(unsigned long long, const void*, size_t)>(library, "cuMemcpyHtoD_v2")),
        load(lookup<int(void**, const void*)>(library, "cuModuleLoadData")),
        find(lookup<int(void**, void*, const char*)>(library, "cuModuleGetFunction")),
        launch(lookup<Launch>(library, "cuLaunchKernel")),
        synchronize(lookup<int()>(library, "cuCtxSynchronize")) {}

  template <typename Signature>
  static Signature* lookup(const hstujit::DynamicLibrary& library, const char* name) {
    return library.function<Signature>(name).value();
  }

  using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                     void**);

  int (*init)(unsigned);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*allocate)(unsigned long long*, size_t);
  int (*fill)(unsigned long long, unsigned char, size_t);
  int (*upload)(unsigned long long, const void*, size_t);
  int (*load)(void**, const void*);
  int (*find)(void**, void*, const char*);
  Launch* launch;
  int (*synchronize)();
};

// Microseconds for one call of `launch`, which is 0 where it succeeded, or -1. Few enough at a time that the driver's
// queue never fills, which would measure the kernel.
template <typename F>
double launch_time(const Cuda& cuda, F launch) {
  constexpr int kBurst = 100, kBursts = 50;
  std::vector<double> bursts;
  for (int burst = 0; burst < kBursts; ++burst) {
    const auto begin = Clock::now();
    for (int i = 0; i < kBurst; ++i) {
      if (launch() != 0) return -1;
    }
    bursts.push_back(milliseconds_since(begin) * 1e3 / kBurst);
    if (cuda.synchronize() != 0) return -1;
  }
  std::nth_element(bursts.begin(), bursts.begin() + kBursts / 2, bursts.end());
  return bursts[kBursts / 2];
}

constexpr const char* kEmptyKernel = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry empty() { ret; }
)";

double empty_launch_time(const Cuda& cuda) {
  void *module = nullptr, *function = nullptr;
  if (cuda.load(&module, kEmptyKernel) != 0 || cuda.find(&function, module, "empty") != 0) return -1;
  return launch_time(cuda, [&] { return cuda.launch(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr); });
}

struct Tensor {
  Tensor(const Cuda& cuda, DLDataType type, std::vector<int64_t> sizes) : shape(std::move(sizes)) {
    size_t bytes = type.bits / 8;
    for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
    if (cuda.allocate(&address, bytes) != 0 || cuda.fill(address, 0, bytes) != 0) std::abort();
    strides.assign(shape.size(), 1);
    for (size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
    dl = {reinterpret_cast<void*>(address),
          {kDLCUDA, 0},
          static_cast<int>(shape.size()),
          type,
          shape.data(),
          strides.data(),
          0};
  }
  unsigned long long address = 0;
  std::vector<int64_t> shape, strides;
  DLTensor dl;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CACHE_DIRECTORY\n", argv[0]);
    return 2;
  }
  const auto library = hstujit::DynamicLibrary::open("the CUDA driver", {"libcuda.so.1"}, hstujit::Code::kNoDriver);
  if (!library.ok()) {
    std::fprintf(stderr, "%s\n", library.status().message().c_str());
    return 3;
  }
  const Cuda cuda(*library);
  void* primary = nullptr;
  if (cuda.init(0) != 0 || cuda.retain(&primary, 0) != 0 || cuda.set_current(primary) != 0) return 3;

  constexpr DLDataType kBf16 = {kDLBfloat, 16, 1}, kInt64 = {kDLInt, 64, 1};
  Tensor q(cuda, kBf16, {kRows, kHeads, kDim}), k(cuda, kBf16, {kRows, kHeads, kDim}),
      v(cuda, kBf16, {kRows, kHeads, kDim});
  Tensor out(cuda, kBf16, {kRows, kHeads, kDim}), offsets(cuda, kInt64, {kSequences + 1}),
      targets(cuda, kInt64, {kSequences});
  const int64_t starts[kSequences + 1] = {0, 64, 128, 192, 256};
  if (cuda.upload(offsets.address, starts, sizeof(starts)) != 0 || cuda.synchronize() != 0) return 3;

  const auto start = Clock::now();
  hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
  options.cache_dir = argv[1];
  hstujit::api::Context context(options);
  hstujit_op* op = nullptr;
  hstujit_problem problem = HSTUJIT_INIT(hstujit_problem);
  problem.max_seq_len = kMaxSeqLen;
  problem.device = 0;
  if (hstujit_op_create(context.get(), kInstance, HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op) != HSTUJIT_OK ||
      hstujit_prepare(op, &problem) != HSTUJIT_OK) {
    std::fprintf(stderr, "%s\n", hstujit_last_error());
    return 1;
  }
  const double prepare_ms = milliseconds_since(start);

  std::vector<hstujit_value> values(9);
  const auto set = [&](const char* name) -> hstujit_value& {
    return values[static_cast<size_t>(hstujit_op_argument(op, name))];
  };
  set("q").tensor = &q.dl;
  set("k").tensor = &k.dl;
  set("v").tensor = &v.dl;
  set("seq_offsets").tensor = &offsets.dl;
  set("num_targets").tensor = &targets.dl;
  set("max_seq_len").integer = kMaxSeqLen;
  set("alpha").real = 1.0 / kDim;
  set("scaling_seqlen").integer = 0;
  set("out").tensor = &out.dl;
  const auto launch = [&] { return hstujit_launch(op, values.data(), values.size(), nullptr, 0, nullptr); };
  if (launch() != HSTUJIT_OK || cuda.synchronize() != 0) {
    std::fprintf(stderr, "%s\n", hstujit_last_error());
    return 1;
  }
  const double first_call_ms = milliseconds_since(start);

  const double launch_us = launch_time(cuda, launch), empty_launch_us = empty_launch_time(cuda);
  if (launch_us < 0 || empty_launch_us < 0) return 1;
  std::printf("{\"prepare_ms\": %.3f, \"first_call_ms\": %.3f, \"launch_us\": %.3f, \"empty_launch_us\": %.3f}\n",
              prepare_ms, first_call_ms, launch_us, empty_launch_us);
  hstujit_op_destroy(op);
  return 0;
}
