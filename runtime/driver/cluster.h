// Launches whose blocks form clusters: groups that run at the same time and read one another's shared memory.
#pragma once

#include <vector>

#include "runtime/driver/cuda_driver.h"

namespace hstujit {

struct BlockShape {
  unsigned threads = 0;
  unsigned shared_memory = 0;  // dynamic bytes
};

// Element c: how many clusters of c of `function`'s blocks the device has room for at a time, for c from 2 to `max`.
// Empty when it knows no clusters. Allows the function sizes beyond what every device has.
std::vector<int64_t> resident_clusters(const CudaDriver& driver, cuda::Function function, const BlockShape& block,
                                       int64_t max);

// As cuLaunchKernel, with `blocks` a multiple of `cluster`.
cuda::Error launch_clusters(const CudaDriver& driver, cuda::Function function, const BlockShape& block, int64_t blocks,
                            int64_t cluster, cuda::Stream stream, void** arguments);

}  // namespace hstujit
