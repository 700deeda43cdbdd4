// The arguments of one call of an operator, as PyTorch's dispatcher hands them over.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "python/native/interface.h"
#include "python/native/torch_functions.h"

namespace hstujit::torch {

inline constexpr int kMaxArguments = 64;  // of a schema, and of a launch
inline constexpr int kMaxRank = 8;        // of an output

const Functions& functions();

// Throws where a function of PyTorch failed.
void check(AOTITorchError error, const char* function);

// A tensor that this library made.
class OwnedTensor {
 public:
  explicit OwnedTensor(AtenTensorHandle handle = nullptr) : handle_(handle) {}
  OwnedTensor(OwnedTensor&& other) noexcept : handle_(other.release()) {}
  OwnedTensor& operator=(OwnedTensor&& other) noexcept;
  ~OwnedTensor();

  AtenTensorHandle get() const { return handle_; }
  AtenTensorHandle release();

 private:
  AtenTensorHandle handle_;
};

// An operator as Python describes it.
struct Operator {
  std::vector<hstujit_torch_slot> slots;
  std::vector<hstujit_torch_axis> axes;
  std::vector<std::int32_t> forms;
  int inputs, parameters, rows, outputs, first;
};

// Takes what is on the stack, and gives it back when it goes.
class Arguments {
 public:
  Arguments(const Operator& op, StableIValue* stack) noexcept;
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // Reads addresses, sizes, strides, data types and devices. Before that only tensors and texts are there to be given
  // back.
  void describe();

  const hstujit_torch_value& input(int index) const { return inputs_[index]; }
  const hstujit_torch_tensor& tensor(int index) const { return *inputs_[index].tensor; }
  AtenTensorHandle handle(int index) const { return handles_[index]; }
  std::int64_t given_rows(int index) const { return rows_[index].integer; }
  const hstujit_torch_call& call() const { return call_; }

  // What a plan follows from, and nothing else. Two calls have the same words where they have the same plan.
  void append_key(std::vector<std::uint64_t>& words) const;

 private:
  void drop_undefined(int input);
  void take(const hstujit_torch_slot& slot, StableIValue value, hstujit_torch_value& to) noexcept;

  const Operator& op_;
  hstujit_torch_call call_;
  std::array<hstujit_torch_value, kMaxArguments> inputs_, parameters_, rows_;
  std::array<hstujit_torch_tensor, kMaxArguments> tensors_;
  std::array<AtenTensorHandle, kMaxArguments> handles_;  // of inputs, nullptr of what is no tensor
  std::array<StringHandle, kMaxArguments> strings_;      // of parameters
};

}  // namespace hstujit::torch
