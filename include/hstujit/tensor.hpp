// Tensors as launches take them: an address with data type, sizes and strides.
#ifndef HSTUJIT_TENSOR_HPP
#define HSTUJIT_TENSOR_HPP

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "hstujit/data_type.hpp"
#include "hstujit/dlpack.h"
#include "hstujit/error.hpp"

namespace hstujit::api {

// Where data lies. `ordinal` is CUDA's number of the GPU.
inline DLDevice host() { return {kDLCPU, 0}; }
inline DLDevice gpu(int ordinal = 0) { return {kDLCUDA, ordinal}; }

// The sizes or strides of a tensor, of at most kMaxRank dimensions; no operator takes more.
// Throws Error, HSTUJIT_INVALID_ARGUMENT, for more.
class Sizes {
 public:
  static constexpr int kMaxRank = 8;

  Sizes(std::initializer_list<std::int64_t> sizes) : Sizes(sizes.begin(), sizes.size()) {}
  Sizes(const std::vector<std::int64_t>& sizes) : Sizes(sizes.data(), sizes.size()) {}
  Sizes(const std::int64_t* sizes, std::size_t rank) : rank_(static_cast<int>(rank)) {
    if (rank > kMaxRank) {
      throw Error(HSTUJIT_INVALID_ARGUMENT,
                  "a tensor has " + std::to_string(rank) + " dimensions; allowed: at most " + std::to_string(kMaxRank));
    }
    std::copy_n(sizes, rank, values_);
  }

  int rank() const { return rank_; }
  std::int64_t operator[](int dimension) const { return values_[dimension]; }
  std::int64_t* data() { return values_; }

 private:
  std::int64_t values_[kMaxRank] = {};
  int rank_;
};

// A value: it owns its sizes and strides, and points to the data, which must outlive the launches.
class Tensor {
 public:
  // Elements lie one after the other, those of the last dimension first. Their data type follows from T: float,
  // std::int32_t, std::int64_t, or what ElementType was specialised for. A launch writes to its outputs only, so an
  // input may be const.
  template <typename T, typename = std::enable_if_t<!std::is_void_v<T>>>
  Tensor(T* data, const Sizes& shape, DLDevice device = host())
      : Tensor(data, ElementType<std::remove_cv_t<T>>::value, shape, device) {}
  // The same for an address of any type.
  Tensor(const void* data, DataType type, const Sizes& shape, DLDevice device = host()) : shape_(shape) {
    tensor_.data = const_cast<void*>(data);
    tensor_.device = device;
    tensor_.ndim = shape.rank();
    tensor_.dtype = dl_type(type);
    point();
  }
  Tensor(const Tensor& other) : tensor_(other.tensor_), shape_(other.shape_), strides_(other.strides_) { point(); }
  Tensor& operator=(const Tensor& other) {
    tensor_ = other.tensor_;
    shape_ = other.shape_;
    strides_ = other.strides_;
    point();
    return *this;
  }

  // The same data with these strides, in elements: columns of a wider matrix, for instance. The last one must be 1.
  // Throws Error, HSTUJIT_INVALID_ARGUMENT, unless there is one for each dimension.
  Tensor with_strides(const Sizes& strides) const {
    if (strides.rank() != shape_.rank()) {
      throw Error(HSTUJIT_INVALID_ARGUMENT, "strides has rank " + std::to_string(strides.rank()) + "; it must be " +
                                                std::to_string(shape_.rank()) + ", as the shape of the tensor");
    }
    Tensor strided = *this;
    strided.strides_ = strides;
    strided.tensor_.strides = strided.strides_.data();
    return strided;
  }

  // Points into this object.
  const DLTensor* dl() const { return &tensor_; }

 private:
  void point() {
    tensor_.shape = shape_.data();
    if (tensor_.strides != nullptr) tensor_.strides = strides_.data();
  }

  DLTensor tensor_{};  // without strides: compact
  Sizes shape_;
  Sizes strides_{};
};

}  // namespace hstujit::api

#endif
