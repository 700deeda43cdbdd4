#include "operations/tuning/data/device_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hstujit {

Result<DeviceBuffer> DeviceBuffer::allocate(CudaDriverPtr driver, size_t bytes) {
  DeviceBuffer buffer;
  // The driver refuses 0 bytes, and an empty tensor still wants an address.
  const size_t size = std::max<size_t>(bytes, 16);
  const cuda::Error error = driver->mem_alloc(&buffer.pointer_, size);
  if (error == cuda::kErrorOutOfMemory) {
    size_t free = 0;
    size_t total = 0;
    driver->mem_get_info(&free, &total);
    return Status(Code::kOutOfMemory,
                  fmt::format("{} bytes of device memory are needed; {} of {} are free", size, free, total));
  }
  if (error != cuda::kSuccess) return driver->failure(error, "cuMemAlloc", __FILE__, __LINE__);
  buffer.driver_ = std::move(driver);
  buffer.size_ = bytes;
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(pointer_, other.pointer_);
  std::swap(size_, other.size_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (pointer_ != 0) driver_->mem_free(pointer_);
}

Status DeviceBuffer::upload(const void* source, size_t bytes) {
  if (bytes == 0) return {};
  HSTUJIT_CUDA_CHECK(*driver_, copy_to_device(pointer_, source, bytes));
  for (size_t done = bytes; done < size_; done *= 2)
    HSTUJIT_CUDA_CHECK(*driver_, copy_on_device(pointer_ + done, pointer_, std::min(done, size_ - done), nullptr));
  // The copy is on the default stream.
  HSTUJIT_CUDA_CHECK(*driver_, stream_synchronize(nullptr));
  return {};
}

Status DeviceBuffer::download(void* destination, size_t bytes) const {
  if (bytes > 0) HSTUJIT_CUDA_CHECK(*driver_, copy_to_host(destination, pointer_, bytes));
  return {};
}

Status DeviceBuffer::fill(unsigned char byte, cuda::Stream stream) {
  if (size_ > 0) HSTUJIT_CUDA_CHECK(*driver_, set_bytes(pointer_, byte, size_, stream));
  return {};
}

Result<DeviceStream> DeviceStream::create(CudaDriverPtr driver) {
  cuda::Stream stream = nullptr;
  HSTUJIT_CUDA_CHECK(*driver, stream_create(&stream, cuda::kStreamNonBlocking));
  return DeviceStream(std::move(driver), stream);
}

DeviceStream::~DeviceStream() {
  if (stream_ != nullptr) driver_->stream_destroy(stream_);
}

Status DeviceStream::synchronize() const {
  HSTUJIT_CUDA_CHECK(*driver_, stream_synchronize(stream_));
  return {};
}

Result<DeviceEvent> DeviceEvent::create(CudaDriverPtr driver) {
  cuda::Event event = nullptr;
  HSTUJIT_CUDA_CHECK(*driver, event_create(&event, cuda::kEventDefault));
  return DeviceEvent(std::move(driver), event);
}

DeviceEvent::~DeviceEvent() {
  if (event_ != nullptr) driver_->event_destroy(event_);
}

}  // namespace hstujit
