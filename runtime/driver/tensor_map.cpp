#include "runtime/driver/tensor_map.h"

namespace hstujit {

namespace {

cuda::TensorMapType type_of(DataType dtype) {
  switch (dtype) {
    case DataType::kFp16:
      return cuda::kTensorMapFloat16;
    case DataType::kFp32:
      return cuda::kTensorMapFloat32;
    default:
      return cuda::kTensorMapBfloat16;
  }
}

cuda::TensorMapSwizzle swizzle_of(int bytes) {
  switch (bytes) {
    case 0:
      return cuda::kSwizzleNone;
    case 32:
      return cuda::kSwizzle32B;
    case 64:
      return cuda::kSwizzle64B;
    default:
      return cuda::kSwizzle128B;
  }
}

}  // namespace

bool has_tensor_map_type(DataType dtype) {
  return dtype == DataType::kBf16 || dtype == DataType::kFp16 || dtype == DataType::kFp32;
}

cuda::Error encode_tensor_map(const CudaDriver& driver, const TensorMapView& view, const TensorMapPlan& plan,
                              cuda::TensorMap* map) {
  constexpr size_t kMaxRank = TensorMapPlan::kMaxRank;
  const size_t rank = plan.axes.size();
  uint64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {};  // strides in bytes, of all dimensions but the first
  uint32_t box[kMaxRank] = {}, steps[kMaxRank] = {};
  int64_t dense = 1;
  for (size_t i = 0; i < rank; ++i) {
    // The stride of a dimension of size 1 is never used, and frameworks leave any number there, which the driver
    // refuses.
    const int64_t stride = view.sizes[i] == 1 ? dense : view.strides[i];
    if (i > 0) strides[i - 1] = static_cast<uint64_t>(stride) * size_of(view.dtype);
    dense = stride * view.sizes[i];
    sizes[i] = static_cast<uint64_t>(view.sizes[i]);
    box[i] = static_cast<uint32_t>(plan.axes[i].box);
    steps[i] = 1;
  }
  return driver.tensor_map_encode_tiled(map, type_of(view.dtype), static_cast<uint32_t>(rank), view.data, sizes,
                                        strides, box, steps, cuda::kInterleaveNone, swizzle_of(plan.swizzle_bytes),
                                        cuda::kPromotionL2_256B, cuda::kFillZeros);
}

}  // namespace hstujit
