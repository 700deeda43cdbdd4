// Tensor maps: how a kernel's bulk copies see a rank-3 tensor of 16-bit elements.
#pragma once

#include "compiler/plan/launch_plan.h"
#include "compiler/spec/types.h"
#include "runtime/driver/cuda_driver.h"

namespace hstujit {

// A (rows L, heads H, columns D) tensor; strides in elements, the innermost one is 1.
struct TensorMapView {
  DataType dtype = DataType::kBf16;
  void* data = nullptr;
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t head_stride = 0;
};

// Fills `map` with dimensions (D, H, L), boxes of {box_columns, 1, box_rows}, 128-byte swizzle, zeros out of bounds.
// The driver must have cuTensorMapEncodeTiled; no allocation, no formatting.
cuda::Error encode_tensor_map(const CudaDriver& driver, const TensorMapView& view, const TensorMapPlan& plan,
                              cuda::TensorMap* map);

}  // namespace hstujit
