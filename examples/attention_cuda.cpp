// Attention on a GPU through the C++ interface, beside the host backend's result.
//
//   c++ -std=c++17 examples/attention_cuda.cpp -lhstujit -lcudart -o attention_cuda && ./attention_cuda
//
// -I and -L name the CUDA toolkit's include and lib64 where the compiler does not know them.
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <hstujit/hstujit.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace api = hstujit::api;

constexpr std::int64_t kRows = 7, kHeads = 2, kColumns = 64, kMaxSeqLen = 16;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// Bytes of the GPU for as long as this lives.
struct DeviceBytes {
  explicit DeviceBytes(std::size_t bytes) {
    if (bytes > 0) check(cudaMalloc(&address, bytes));
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { cudaFree(address); }
  void* address = nullptr;
};

// Launches with q, k, v, out and seq_offsets at these addresses: of the GPU's memory with the CUDA backend.
void attend(const api::Context& context, hstujit_backend backend, const std::vector<void*>& addresses,
            cudaStream_t stream) {
  api::HstuAttention attention;
  attention.heads = kHeads;
  attention.attn_dim = attention.hidden_dim = kColumns;
  attention.dtype = api::DataType::fp32;
  attention.precision = api::Precision::ieee;
  api::Op op(context, attention, HSTUJIT_FORWARD, backend);
  op.prepare(kMaxSeqLen);  // a kernel is looked up here, or compiled, and never in a launch

  const DLDevice device = backend == HSTUJIT_BACKEND_CUDA ? api::gpu() : api::host();
  const auto rows = [&](int i) {
    return api::Tensor(addresses[i], api::DataType::fp32, {kRows, kHeads, kColumns}, device);
  };
  const api::Launch launch(op, {{"q", rows(0)},
                                {"k", rows(1)},
                                {"v", rows(2)},
                                {"out", rows(3)},
                                {"seq_offsets", api::Tensor(addresses[4], api::DataType::int64, {3}, device)},
                                {"max_seq_len", kMaxSeqLen},
                                {"alpha", 1.0 / kColumns},
                                {"scaling_seqlen", 0}});
  const std::size_t bytes = launch.workspace_size();  // 0 for most kernels
  const DeviceBytes workspace(bytes);
  launch.run(stream, {workspace.address, bytes});
  // The op and the workspace are needed until the launch is done.
  if (backend == HSTUJIT_BACKEND_CUDA) check(cudaStreamSynchronize(stream));
}

}  // namespace

int main() try {
  std::vector<float> inputs[3], host_out(kRows * kHeads * kColumns), device_out(host_out.size());
  for (int i = 0; i < 3; ++i) {
    inputs[i].resize(host_out.size());
    for (std::size_t j = 0; j < inputs[i].size(); ++j) inputs[i][j] = std::sin(0.37f * static_cast<float>(j + i * 100));
  }
  std::vector<std::int64_t> offsets = {0, 3, 7};  // two sequences, of 3 and 4 rows, one after the other
  const api::Context context;
  attend(context, HSTUJIT_BACKEND_HOST,
         {inputs[0].data(), inputs[1].data(), inputs[2].data(), host_out.data(), offsets.data()}, nullptr);

  const std::size_t bytes = host_out.size() * sizeof(float);
  check(cudaSetDevice(0));  // makes the context that prepare and launch use
  const DeviceBytes q(bytes), k(bytes), v(bytes), out(bytes), device_offsets(3 * sizeof(std::int64_t));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream));
  for (int i = 0; i < 3; ++i) {
    void* const to = i == 0 ? q.address : i == 1 ? k.address : v.address;
    check(cudaMemcpyAsync(to, inputs[i].data(), bytes, cudaMemcpyHostToDevice, stream));
  }
  check(cudaMemcpyAsync(device_offsets.address, offsets.data(), 3 * sizeof(std::int64_t), cudaMemcpyHostToDevice,
                        stream));
  attend(context, HSTUJIT_BACKEND_CUDA, {q.address, k.address, v.address, out.address, device_offsets.address}, stream);
  check(cudaMemcpy(device_out.data(), out.address, bytes, cudaMemcpyDeviceToHost));
  check(cudaStreamDestroy(stream));

  float worst = 0;
  for (std::size_t i = 0; i < host_out.size(); ++i) worst = std::fmax(worst, std::fabs(device_out[i] - host_out[i]));
  std::printf("largest difference between GPU and host: %g\n", worst);
  return worst < 1e-5f ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
