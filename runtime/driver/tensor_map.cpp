#include "runtime/driver/tensor_map.h"

namespace hstujit {

cuda::Error encode_tensor_map(const CudaDriver& driver, const TensorMapView& view, const TensorMapPlan& plan,
                              cuda::TensorMap* map) {
  constexpr uint32_t kRank = 3;
  constexpr uint64_t kElementBytes = 2;
  const uint64_t dimensions[kRank] = {static_cast<uint64_t>(view.columns), static_cast<uint64_t>(view.heads),
                                      static_cast<uint64_t>(view.rows)};
  // The stride of a dimension of size 1 is never used, and frameworks leave any number there, which the driver refuses.
  const int64_t head_stride = view.heads == 1 ? view.columns : view.head_stride;
  const int64_t row_stride = view.rows == 1 ? head_stride * view.heads : view.row_stride;
  const uint64_t strides[kRank - 1] = {static_cast<uint64_t>(head_stride) * kElementBytes,
                                       static_cast<uint64_t>(row_stride) * kElementBytes};
  const uint32_t box[kRank] = {static_cast<uint32_t>(plan.box_columns), 1, static_cast<uint32_t>(plan.box_rows)};
  const uint32_t element_strides[kRank] = {1, 1, 1};
  return driver.tensor_map_encode_tiled(
      map, view.dtype == DataType::kFp16 ? cuda::kTensorMapFloat16 : cuda::kTensorMapBfloat16, kRank, view.data,
      dimensions, strides, box, element_strides, cuda::kInterleaveNone, cuda::kSwizzle128B, cuda::kPromotionL2_256B,
      cuda::kFillZeros);
}

}  // namespace hstujit
