// The arguments of one call of an operator, and those that PyTorch's dispatcher hands over.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "python/native/interface.h"
#include "python/native/torch_functions.h"

namespace hstujit::torch {

inline constexpr int kMaxArguments = 64;  // of a schema, and of a launch
inline constexpr int kMaxOutputs = 16;    // of a schema, and of a launch
inline constexpr int kMaxRank = 8;        // of an output

const Functions& functions();
// The kernels that torch.use_deterministic_algorithms asks for now, a hstujit_torch_determinism.
std::int32_t determinism();

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

// The arguments of one call. Whoever reads them derives from this.
class Arguments {
 public:
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  const hstujit_torch_value& input(int index) const { return inputs_[index]; }
  const hstujit_torch_tensor& tensor(int index) const { return *inputs_[index].tensor; }
  // nullptr of what is no tensor, and in a call that did not come through the dispatcher
  AtenTensorHandle handle(int index) const { return handles_[index]; }
  std::int64_t given_rows(int index) const { return rows_[index].integer; }
  const hstujit_torch_call& call() const { return call_; }

  // What a plan follows from, and nothing else. Two calls have the same words where they have the same plan.
  void append_key(std::vector<std::uint64_t>& words) const;

 protected:
  explicit Arguments(const Operator& op) noexcept;
  ~Arguments() = default;

  bool is_tensor(int input) const { return inputs_[input].kind == HSTUJIT_TORCH_TENSOR; }
  hstujit_torch_value& value_of(const hstujit_torch_slot& slot);
  // Once all tensors are described.
  void make_call();

  const Operator& op_;
  std::array<hstujit_torch_value, kMaxArguments> inputs_, parameters_, rows_;
  std::array<hstujit_torch_tensor, kMaxArguments> tensors_;
  std::array<AtenTensorHandle, kMaxArguments> handles_;

 private:
  hstujit_torch_call call_;
};

// Takes what is on the dispatcher's stack, and gives it back when it goes.
class StackArguments : public Arguments {
 public:
  StackArguments(const Operator& op, StableIValue* stack) noexcept;
  ~StackArguments();

  // Reads addresses, sizes, strides, data types and devices. Before that only tensors and texts are there to be given
  // back.
  void describe();

 private:
  void drop_undefined(int input);
  void take(const hstujit_torch_slot& slot, StableIValue value, hstujit_torch_value& to) noexcept;

  std::array<StringHandle, kMaxArguments> strings_;  // of parameters
};

}  // namespace hstujit::torch
