// The tensor maps of a launcher's kernel, as the launch before had them.
//
// The driver takes five times as long to encode a map as to give one another address, and what launches one kernel
// again and again, such as the layers of a model, often does so with tensors of the same sizes.
#pragma once

#include <atomic>
#include <vector>

#include "runtime/driver/tensor_map.h"

namespace hstujit {

class KeptMaps {
 public:
  // For kernels of `count` maps.
  explicit KeptMaps(size_t count) : maps_(count) {}

  // The maps during one launch. Nobody waits: where another thread has them, each map is encoded.
  class Use {
   public:
    explicit Use(KeptMaps& kept)
        : kept_(kept), owns_(!kept.maps_.empty() && !kept.busy_.test_and_set(std::memory_order_acquire)) {}
    ~Use() {
      if (owns_) kept_.busy_.clear(std::memory_order_release);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // As encode_tensor_map(), for the kernel's map number `index`, whose plan is always the same.
    cuda::Error encode(const CudaDriver& driver, size_t index, const TensorMapView& view, const TensorMapPlan& plan,
                       cuda::TensorMap* map);

   private:
    KeptMaps& kept_;
    const bool owns_;
  };

 private:
  struct Kept {
    bool there = false;
    TensorMapView view;
    cuda::TensorMap map;
  };

  std::atomic_flag busy_;
  std::vector<Kept> maps_;
};

}  // namespace hstujit
