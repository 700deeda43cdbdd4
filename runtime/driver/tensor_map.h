// Tensor maps: how a kernel's bulk copies see a tensor.
#pragma once

#include "compiler/plan/launch_plan.h"
#include "compiler/spec/types.h"
#include "runtime/driver/cuda_driver.h"

namespace hstujit {

// A tensor with elements, its dimensions in the order of a TensorMapPlan's axes.
struct TensorMapView {
  DataType dtype = DataType::kBf16;
  void* data = nullptr;
  int64_t sizes[TensorMapPlan::kMaxRank] = {};
  int64_t strides[TensorMapPlan::kMaxRank] = {};  // elements; the first one is 1
};

// Whether a driver encodes maps of this type.
bool has_tensor_map_type(DataType dtype);

// The driver must have cuTensorMapEncodeTiled; no allocation, no formatting.
cuda::Error encode_tensor_map(const CudaDriver& driver, const TensorMapView& view, const TensorMapPlan& plan,
                              cuda::TensorMap* map);

}  // namespace hstujit
