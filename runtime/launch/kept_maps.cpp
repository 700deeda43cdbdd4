#include "runtime/launch/kept_maps.h"

#include <algorithm>

namespace hstujit {

namespace {

bool equal_sizes(const TensorMapView& a, const TensorMapView& b) {
  return a.dtype == b.dtype && std::ranges::equal(a.sizes, b.sizes) && std::ranges::equal(a.strides, b.strides);
}

}  // namespace

cuda::Error KeptMaps::Use::encode(const CudaDriver& driver, size_t index, const TensorMapView& view,
                                  const TensorMapPlan& plan, cuda::TensorMap* map) {
  if (!owns_ || driver.tensor_map_replace_address == nullptr) return encode_tensor_map(driver, view, plan, map);
  Kept& kept = kept_.maps_[index];
  if (kept.there && equal_sizes(kept.view, view)) {
    *map = kept.map;
    if (driver.tensor_map_replace_address(map, view.data) == cuda::kSuccess) return cuda::kSuccess;
  }
  const cuda::Error error = encode_tensor_map(driver, view, plan, map);
  kept.there = error == cuda::kSuccess;
  if (kept.there) {
    kept.view = view;
    kept.map = *map;
  }
  return error;
}

}  // namespace hstujit
