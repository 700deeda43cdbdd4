// Launches whose blocks form clusters: groups that run at the same time and read one another's shared memory.
#pragma once

#include "runtime/driver/cuda_driver.h"

namespace hstujit {

struct BlockShape {
  unsigned threads = 0;
  unsigned shared_memory = 0;  // dynamic bytes
};

// The largest power of two up to `most` of which the device can run a cluster of `function`'s blocks; 1 when it knows
// no clusters. Allows the function sizes beyond what every device has.
int64_t largest_cluster(const CudaDriver& driver, cuda::Function function, const BlockShape& block, int64_t most);

// As cuLaunchKernel, with `blocks` a multiple of `cluster`.
cuda::Error launch_clusters(const CudaDriver& driver, cuda::Function function, const BlockShape& block, int64_t blocks,
                            int64_t cluster, cuda::Stream stream, void** arguments);

}  // namespace hstujit
