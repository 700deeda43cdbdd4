#include "runtime/driver/cluster.h"

namespace hstujit {

namespace {

constexpr int64_t kPortableBlocks = 8;  // every device that has clusters runs this many blocks in one

cuda::LaunchAttribute cluster_attribute(int64_t cluster) {
  cuda::LaunchAttribute attribute = {};
  attribute.id = cuda::kClusterDimension;
  attribute.cluster[0] = static_cast<unsigned>(cluster);
  attribute.cluster[1] = attribute.cluster[2] = 1;
  return attribute;
}

cuda::LaunchConfig launch_config(const BlockShape& block, int64_t blocks, cuda::Stream stream,
                                 cuda::LaunchAttribute* attribute) {
  return {{static_cast<unsigned>(blocks), 1, 1}, {block.threads, 1, 1}, block.shared_memory, stream, attribute, 1};
}

}  // namespace

std::vector<int64_t> resident_clusters(const CudaDriver& driver, cuda::Function function, const BlockShape& block,
                                       int64_t max) {
  if (driver.launch_kernel_ex == nullptr || driver.occupancy_max_active_clusters == nullptr) return {};
  if (max > kPortableBlocks &&
      driver.function_set_attribute(function, cuda::kNonPortableClusterSizeAllowed, 1) != cuda::kSuccess) {
    max = kPortableBlocks;
  }
  std::vector<int64_t> resident(static_cast<size_t>(max + 1), 0);
  for (int64_t cluster = 2; cluster <= max; ++cluster) {
    cuda::LaunchAttribute attribute = cluster_attribute(cluster);
    const cuda::LaunchConfig config = launch_config(block, cluster, nullptr, &attribute);
    int clusters = 0;
    if (driver.occupancy_max_active_clusters(&clusters, function, &config) != cuda::kSuccess) break;
    resident[static_cast<size_t>(cluster)] = clusters;
  }
  return resident;
}

cuda::Error launch_clusters(const CudaDriver& driver, cuda::Function function, const BlockShape& block, int64_t blocks,
                            int64_t cluster, cuda::Stream stream, void** arguments) {
  cuda::LaunchAttribute attribute = cluster_attribute(cluster);
  const cuda::LaunchConfig config = launch_config(block, blocks, stream, &attribute);
  return driver.launch_kernel_ex(&config, function, arguments, nullptr);
}

}  // namespace hstujit
