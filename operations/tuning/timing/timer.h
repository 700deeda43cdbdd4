// Times launches on the device: cold L2 before each one, CUDA events around it, repeats interleaved over the kernels.
#pragma once

#include <functional>
#include <vector>

#include "operations/tuning/data/device_buffers.h"

namespace hstujit {

// Enqueues one launch on the stream.
using LaunchFunction = std::function<Status(cuda::Stream)>;

class DeviceTimer {
 public:
  // `l2_bytes` of the device; a buffer of twice that size is overwritten before each launch.
  static Result<DeviceTimer> create(CudaDriverPtr driver, int64_t l2_bytes);

  // Milliseconds of each repeat, by kernel. Every kernel is launched once before that, untimed. `before_launch` hears
  // of each launch, outside of what is timed.
  Result<std::vector<std::vector<double>>> time(const std::vector<LaunchFunction>& kernels, int repeats,
                                                const std::function<void(size_t kernel)>& before_launch = {});

  cuda::Stream stream() const { return stream_.get(); }

 private:
  DeviceTimer(CudaDriverPtr driver, DeviceStream stream, DeviceEvent begin, DeviceEvent end, DeviceBuffer flush)
      : driver_(std::move(driver)),
        stream_(std::move(stream)),
        begin_(std::move(begin)),
        end_(std::move(end)),
        flush_(std::move(flush)) {}

  Result<double> time_once(const LaunchFunction& kernel);

  CudaDriverPtr driver_;
  DeviceStream stream_;
  DeviceEvent begin_;
  DeviceEvent end_;
  DeviceBuffer flush_;
};

}  // namespace hstujit
