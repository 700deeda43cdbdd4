// The arguments of one call of an operator, and those that PyTorch's dispatcher hands over.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hstujit/hstujit.h"
#include "python/native/operators.h"
#include "python/native/torch_functions.h"

namespace hstujit::torch {

const Functions& functions();

// The kernels that torch.use_deterministic_algorithms asks for.
enum class Determinism : std::int32_t {
  kAny,
  kDeterministic,
  kPreferred,  // deterministic ones; with a warning others, where there are none
};
Determinism determinism();

// Throws where a function of PyTorch failed.
void check(AOTITorchError error, const char* function);

// The data type of PyTorch's number, as DLPack has it.
DLDataType dlpack_type(std::int32_t dtype);
// The reverse, -1 of one that PyTorch does not have.
std::int32_t torch_type(DLDataType type);

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

// The arguments of one call: takes what is on the dispatcher's stack, and gives it back when it goes.
class Arguments {
 public:
  Arguments(const Operator& op, StableIValue* stack) noexcept;
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // Reads addresses, sizes, strides, data types and devices. Before that only tensors and texts are there to be given
  // back.
  void describe();

  const Value& input(int index) const { return inputs_[index]; }
  const Tensor& tensor(int index) const { return *inputs_[index].tensor; }
  // Inputs of the operator, and behind them the tensors that its text declares.
  int input_count() const { return static_cast<int>(op_.inputs.size() + declared_); }
  AtenTensorHandle handle(int index) const { return handles_[index]; }  // nullptr of what is no tensor
  std::int64_t given_rows(int index) const { return rows_[index].integer; }
  const Operator& op() const { return op_; }
  // The place of the first tensor: a CUDA ordinal, -1 on the CPU.
  std::int32_t device() const { return device_; }
  Determinism determinism() const { return determinism_; }

  // Creates the call that these arguments are. Throws where the library refuses it.
  hstujit_call* create_call(hstujit_context* context, bool deterministic) const;

  // Appends what a plan follows from, and nothing else. Two calls have the same words where they have the same plan.
  void append_key(std::vector<std::uint64_t>& words) const;

 private:
  bool is_tensor(int input) const { return inputs_[input].kind == Kind::kTensor; }
  Value& value_of(const Slot& slot);
  void take_declared(StableListHandle list) noexcept;
  void drop_undefined(int input);
  void take(const Slot& slot, StableIValue value, Value& to) noexcept;

  const Operator& op_;
  std::array<Value, kMaxArguments> inputs_, parameters_, rows_;
  std::array<Tensor, kMaxArguments> tensors_;
  std::array<AtenTensorHandle, kMaxArguments> handles_;
  std::array<StringHandle, kMaxArguments> strings_;  // of parameters
  std::size_t declared_ = 0;
  bool has_room_ = true;  // for what is declared
  std::int32_t device_ = -1;
  Determinism determinism_ = Determinism::kAny;
};

}  // namespace hstujit::torch
