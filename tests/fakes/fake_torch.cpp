// Takes tensors of the CPU for those of a GPU: functions that stand where libhstujit_torch.so calls PyTorch's, so that
// its way to a CUDA launch runs without a GPU, beside the fake driver.
#include <cstdint>

#include "python/native/torch_functions.h"

namespace {

constexpr std::int64_t kAlignment = 256;  // of workspaces
constexpr int kCuda = 1;                  // any but the CPU's, which is 0

struct FakeTorch {
  std::int32_t current_device = 0;
  std::int32_t guards = 0;  // that were made
  std::int32_t streams_asked = 0;
  std::int32_t workspaces = 0;       // that were allocated: tensors of bytes
  std::int64_t workspace_bytes = 0;  // of the last one
  void* stream = nullptr;
  std::int32_t capturing = 0;
} fake;

hstujit::torch::Functions real;

std::int32_t device_type_cuda() { return kCuda; }

AOTITorchError get_device_type(AtenTensorHandle, std::int32_t* type) {
  *type = kCuda;
  return 0;
}

AOTITorchError get_device_index(AtenTensorHandle, std::int32_t* index) {
  *index = 0;
  return 0;
}

AOTITorchError get_current_device_index(std::int32_t* index) {
  *index = fake.current_device;
  return 0;
}

AOTITorchError create_device_guard(std::int32_t, DeviceGuardHandle* guard) {
  ++fake.guards;
  *guard = reinterpret_cast<DeviceGuardHandle>(&fake);
  return 0;
}

AOTITorchError delete_device_guard(DeviceGuardHandle) { return 0; }

AOTITorchError get_current_cuda_stream(std::int32_t, void** stream) {
  ++fake.streams_asked;
  *stream = fake.stream;
  return 0;
}

AOTITorchError set_device(int) { return 0; }

AOTITorchError stream_is_capturing(void*, std::int32_t* status) {
  *status = fake.capturing;
  return 0;
}

AOTITorchError empty_strided(std::int64_t rank, const std::int64_t* sizes, const std::int64_t* strides,
                             std::int32_t dtype, std::int32_t, std::int32_t, AtenTensorHandle* made) {
  const std::int32_t cpu = real.aoti_torch_device_type_cpu();
  if (dtype != real.aoti_torch_dtype_uint8())
    return real.aoti_torch_empty_strided(rank, sizes, strides, dtype, cpu, 0, made);
  ++fake.workspaces;
  fake.workspace_bytes = sizes[0];
  const std::int64_t more = sizes[0] + kAlignment;
  AtenTensorHandle memory = nullptr;
  if (real.aoti_torch_empty_strided(1, &more, strides, dtype, cpu, 0, &memory)) return 1;
  void* data = nullptr;
  real.torch_get_mutable_data_ptr(memory, &data);
  const auto start = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(data) % kAlignment);
  const AOTITorchError error = real.aoti_torch__reinterpret_tensor(memory, 1, sizes, strides, start, made);
  real.aoti_torch_delete_tensor_object(memory);
  return error;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT FakeTorch* fake_torch() { return &fake; }

// `used` is hstujit_torch_functions(). Nothing else may run meanwhile.
EXPORT void fake_torch_install(hstujit::torch::Functions* used) {
  fake = {};
  real = *used;
  used->aoti_torch_device_type_cuda = device_type_cuda;
  used->aoti_torch_get_device_type = get_device_type;
  used->aoti_torch_get_device_index = get_device_index;
  used->aoti_torch_get_current_device_index = get_current_device_index;
  used->aoti_torch_create_device_guard = create_device_guard;
  used->aoti_torch_delete_device_guard = delete_device_guard;
  used->aoti_torch_get_current_cuda_stream = get_current_cuda_stream;
  used->cudaSetDevice = set_device;
  used->cudaStreamIsCapturing = stream_is_capturing;
  used->aoti_torch_empty_strided = empty_strided;
}

EXPORT void fake_torch_remove(hstujit::torch::Functions* used) { *used = real; }
