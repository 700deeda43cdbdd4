#include "operations/tuning/timing/timer.h"

#include <algorithm>

namespace hstujit {

namespace {

constexpr int64_t kSmallestFlush = int64_t{64} << 20;

}  // namespace

Result<DeviceTimer> DeviceTimer::create(CudaDriverPtr driver, int64_t l2_bytes) {
  HSTUJIT_ASSIGN_OR_RETURN(DeviceStream stream, DeviceStream::create(driver));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceEvent begin, DeviceEvent::create(driver));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceEvent end, DeviceEvent::create(driver));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceBuffer flush,
                           DeviceBuffer::allocate(driver, static_cast<size_t>(std::max(2 * l2_bytes, kSmallestFlush))));
  return DeviceTimer(std::move(driver), std::move(stream), std::move(begin), std::move(end), std::move(flush));
}

Result<double> DeviceTimer::time_once(const LaunchFunction& kernel) {
  HSTUJIT_RETURN_IF_ERROR(flush_.fill(0, stream()));
  HSTUJIT_CUDA_CHECK(*driver_, event_record(begin_.get(), stream()));
  HSTUJIT_RETURN_IF_ERROR(kernel(stream()));
  HSTUJIT_CUDA_CHECK(*driver_, event_record(end_.get(), stream()));
  HSTUJIT_CUDA_CHECK(*driver_, event_synchronize(end_.get()));
  float milliseconds = 0;
  HSTUJIT_CUDA_CHECK(*driver_, event_elapsed(&milliseconds, begin_.get(), end_.get()));
  return double{milliseconds};
}

Result<std::vector<std::vector<double>>> DeviceTimer::time(const std::vector<LaunchFunction>& kernels, int repeats,
                                                           const std::function<void(size_t)>& before_launch) {
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (before_launch) before_launch(i);
    HSTUJIT_RETURN_IF_ERROR(kernels[i](stream()));
    // Here already, so that a failure is known to be this kernel's.
    HSTUJIT_RETURN_IF_ERROR(stream_.synchronize());
  }
  std::vector<std::vector<double>> samples(kernels.size());
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (size_t turn = 0; turn < kernels.size(); ++turn) {
      // Another one begins each repeat, so that none always comes after the same.
      const size_t i = (turn + static_cast<size_t>(repeat)) % kernels.size();
      if (before_launch) before_launch(i);
      HSTUJIT_ASSIGN_OR_RETURN(const double milliseconds, time_once(kernels[i]));
      samples[i].push_back(milliseconds);
    }
  }
  return samples;
}

}  // namespace hstujit
