#include "python/native/sizes.h"

#include <array>
#include <stdexcept>

namespace hstujit::torch {
namespace {

// The last element of a tensor of offsets. On a GPU this waits for the stream.
std::int64_t last_of(const Arguments& arguments, int input) {
  const Functions& torch = functions();
  const hstujit_torch_tensor& offsets = arguments.tensor(input);
  if (offsets.sizes[0] == 0) return 0;
  AtenTensorHandle view = nullptr;
  // Counts elements from where the tensor begins, wherever that is in its storage.
  check(torch.aoti_torch__reinterpret_tensor(arguments.handle(input), 0, nullptr, nullptr,
                                             (offsets.sizes[0] - 1) * offsets.strides[0], &view),
        "aoti_torch__reinterpret_tensor");
  const OwnedTensor last(view);
  if (offsets.dtype == torch.aoti_torch_dtype_int32()) {
    std::int32_t value = 0;
    check(torch.aoti_torch_item_int32(last.get(), &value), "aoti_torch_item_int32");
    return value;
  }
  std::int64_t value = 0;
  check(torch.aoti_torch_item_int64(last.get(), &value), "aoti_torch_item_int64");
  return value;
}

// A stack of numbers. Programs are made from signatures, and need few places.
class Stack {
 public:
  void push(std::int64_t value) {
    if (count_ == values_.size()) throw std::logic_error("the size of an output is too long an expression");
    values_[count_++] = value;
  }
  std::int64_t pop() {
    if (count_ == 0) throw std::logic_error("the size of an output is no expression");
    return values_[--count_];
  }

 private:
  std::array<std::int64_t, 16> values_;
  std::size_t count_ = 0;
};

std::int64_t rounded_down(std::int64_t dividend, std::int64_t divisor) {
  const std::int64_t quotient = dividend / divisor;
  return quotient - (dividend % divisor != 0 && (dividend < 0) != (divisor < 0));
}

}  // namespace

bool evaluate(std::span<const std::int64_t> program, const Arguments& arguments, std::span<std::int64_t> sizes,
              Last& last) {
  Stack stack;
  std::size_t done = 0;
  for (auto word = program.begin(); word != program.end();) {
    const std::int64_t operation = *word++;
    switch (operation) {
      case HSTUJIT_TORCH_END:
        if (done == sizes.size()) throw std::logic_error("an output has more sizes than there is room for");
        sizes[done] = stack.pop();
        if (sizes[done++] < 0) return false;
        break;
      case HSTUJIT_TORCH_CONSTANT:
        stack.push(*word++);
        break;
      case HSTUJIT_TORCH_SIZE: {
        const auto input = static_cast<int>(*word++);
        stack.push(arguments.tensor(input).sizes[*word++]);
        break;
      }
      case HSTUJIT_TORCH_NUMBER:
        stack.push(arguments.input(static_cast<int>(*word++)).integer);
        break;
      case HSTUJIT_TORCH_GIVEN:
        stack.push(arguments.given_rows(static_cast<int>(*word++)));
        break;
      case HSTUJIT_TORCH_LAST: {
        const auto input = static_cast<std::int32_t>(*word++);
        last = {input, last_of(arguments, input)};
        stack.push(last.value);
        break;
      }
      case HSTUJIT_TORCH_BOUNDED: {
        const std::int64_t most = stack.pop(), value = stack.pop();
        if (value < 0 || value > most) return false;
        stack.push(value);
        break;
      }
      default: {
        const std::int64_t right = stack.pop(), left = stack.pop();
        std::int64_t result = 0;
        const bool is_too_large = operation == HSTUJIT_TORCH_ADD        ? __builtin_add_overflow(left, right, &result)
                                  : operation == HSTUJIT_TORCH_SUBTRACT ? __builtin_sub_overflow(left, right, &result)
                                  : operation == HSTUJIT_TORCH_MULTIPLY ? __builtin_mul_overflow(left, right, &result)
                                                                        : false;
        if (is_too_large) return false;
        stack.push(operation == HSTUJIT_TORCH_DIVIDE ? rounded_down(left, right) : result);
      }
    }
  }
  return true;
}

}  // namespace hstujit::torch
