// Device memory and the tensors in it, for tuning, checking and benchmarks. A launch never uses any of this.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "compiler/spec/op_spec.h"
#include "runtime/driver/cuda_driver.h"
#include "runtime/launch/arguments.h"

namespace hstujit {

// Bytes in device memory of the context that was current at allocation.
class DeviceBuffer {
 public:
  static Result<DeviceBuffer> allocate(CudaDriverPtr driver, size_t bytes);
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  void* data() const { return reinterpret_cast<void*>(pointer_); }
  cuda::DevicePtr pointer() const { return pointer_; }
  size_t size() const { return size_; }

  // The bytes, again and again until the buffer is full. Done when it returns, for every stream: a copy from pageable
  // memory may return before the bytes have arrived, and streams that do not block wait for nothing.
  Status upload(const void* source, size_t bytes);
  // The caller has synchronised with what wrote the bytes.
  Status download(void* destination, size_t bytes) const;
  Status fill(unsigned char byte, cuda::Stream stream);  // asynchronous

 private:
  CudaDriverPtr driver_;
  cuda::DevicePtr pointer_ = 0;
  size_t size_ = 0;
};

// Events and a stream, released with their owner.
class DeviceStream {
 public:
  static Result<DeviceStream> create(CudaDriverPtr driver);
  DeviceStream(DeviceStream&& other) noexcept : driver_(std::move(other.driver_)), stream_(other.stream_) {
    other.stream_ = nullptr;
  }
  DeviceStream& operator=(DeviceStream&&) = delete;
  ~DeviceStream();
  cuda::Stream get() const { return stream_; }
  Status synchronize() const;

 private:
  DeviceStream(CudaDriverPtr driver, cuda::Stream stream) : driver_(std::move(driver)), stream_(stream) {}
  CudaDriverPtr driver_;
  cuda::Stream stream_;
};

class DeviceEvent {
 public:
  static Result<DeviceEvent> create(CudaDriverPtr driver);
  DeviceEvent(DeviceEvent&& other) noexcept : driver_(std::move(other.driver_)), event_(other.event_) {
    other.event_ = nullptr;
  }
  DeviceEvent& operator=(DeviceEvent&&) = delete;
  ~DeviceEvent();
  cuda::Event get() const { return event_; }

 private:
  DeviceEvent(CudaDriverPtr driver, cuda::Event event) : driver_(std::move(driver)), event_(event) {}
  CudaDriverPtr driver_;
  cuda::Event event_;
};

}  // namespace hstujit
