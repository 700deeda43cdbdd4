#include "compiler/host/packed_arguments.h"

#include <cstring>

namespace hstujit {

PackedArguments::PackedArguments(const Arguments& arguments, std::span<float> scratch, std::span<float> parts) {
  for (size_t i = 0; i < arguments.signature().size(); ++i) {
    const HstujitHostValue& value = arguments.at(i);
    switch (arguments.signature()[i].kind) {
      case ArgumentKind::kTensor:
        push_memref(value.data, value.shape, value.strides, value.rank);
        break;
      case ArgumentKind::kFloat:
        push(static_cast<float>(value.real));
        break;
      case ArgumentKind::kInt:
        push(value.integer);
        break;
    }
  }
  first_coordinate_ = pointers_.size();
  for (size_t i = 0; i < WorkItem::kCoordinates; ++i) push(int64_t{0});
  push_buffer(scratch);
  push_buffer(parts);
}

void** PackedArguments::with(const WorkItem& item) {
  for (size_t i = 0; i < WorkItem::kCoordinates; ++i) {
    *static_cast<int64_t*>(pointers_[first_coordinate_ + i]) = item.coordinates[i];
  }
  return pointers_.data();
}

void PackedArguments::push(int64_t word) {
  words_.push_back(word);
  pointers_.push_back(&words_.back());
}

void PackedArguments::push(float real) {
  int64_t word = 0;
  std::memcpy(&word, &real, sizeof(real));
  push(word);
}

void PackedArguments::push_buffer(std::span<float> buffer) {
  const auto size = static_cast<int64_t>(buffer.size());
  const int64_t one = 1;
  push_memref(buffer.data(), &size, &one, 1);
}

void PackedArguments::push_memref(void* data, const int64_t* shape, const int64_t* strides, int rank) {
  const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(data));
  push(address);     // allocated
  push(address);     // aligned
  push(int64_t{0});  // offset
  for (int i = 0; i < rank; ++i) push(shape[i]);
  for (int i = 0; i < rank; ++i) push(strides[i]);
}

}  // namespace hstujit
