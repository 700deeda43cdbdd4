// A launch's arguments in the form that compiled code takes them: one pointer to each field.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "compiler/host/arguments.h"
#include "compiler/host/operator.h"

namespace hstujit {

// One per thread; `with` changes the coordinates in place.
class PackedArguments {
 public:
  // `scratch` is the thread's own, `parts` is shared.
  PackedArguments(const Arguments& arguments, std::span<float> scratch, std::span<float> parts);
  PackedArguments(PackedArguments&&) = default;

  void** with(const WorkItem& item);

 private:
  void push(int64_t word);
  void push(float real);
  void push_buffer(std::span<float> buffer);
  void push_memref(void* data, const int64_t* shape, const int64_t* strides, int rank);

  std::deque<int64_t> words_;  // a deque: pointers to its elements stay valid as it grows
  std::vector<void*> pointers_;
  size_t first_coordinate_ = 0;  // in pointers_
};

}  // namespace hstujit
