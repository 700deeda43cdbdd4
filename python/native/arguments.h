// The arguments of one call of an operator, and those that PyTorch's dispatcher hands over.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "hstujit/hstujit.h"
#include "python/native/operators.h"
#include "python/native/torch_functions.h"

namespace hstujit::torch {

const Functions& functions();

// Throws where a function of PyTorch failed.
void check(AOTITorchError error, const char* function);
#define HSTUJIT_CALL_TORCH(name, ...) hstujit::torch::check(hstujit::torch::functions().name(__VA_ARGS__), #name)

// The kernels that torch.use_deterministic_algorithms asks for.
enum class Determinism : std::int32_t {
  kAny,
  kDeterministic,
  kPreferred,  // deterministic ones; with a warning others, where there are none
};
Determinism determinism();

// PyTorch's number of a data type, -1 of one that it does not have.
std::int32_t torch_type(DLDataType type);

// A tensor that this library made, or was given.
struct DeleteTensor {
  void operator()(AtenTensorHandle handle) const { functions().aoti_torch_delete_tensor_object(handle); }
};
using OwnedTensor = std::unique_ptr<AtenTensorOpaque, DeleteTensor>;

struct DestroyCall {
  void operator()(hstujit_call* call) const { hstujit_call_destroy(call); }
};
using OwnedCall = std::unique_ptr<hstujit_call, DestroyCall>;

// The arguments of one call: takes what is on the dispatcher's stack, and gives it back when it goes. They are counted
// as the operator's slots are, and behind these come the tensors that its text declares.
class Arguments {
 public:
  Arguments(const Operator& op, StableIValue* stack) noexcept;
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // Reads addresses, sizes, strides, data types and devices. Before that tensors and texts are only there to be given
  // back.
  void describe();

  const hstujit_value& value(int at) const { return given_[at].value; }
  AtenTensorHandle tensor(int at) const { return static_cast<AtenTensorHandle>(handles_[at]); }
  const Operator& op() const { return op_; }
  // The place of the first tensor: a CUDA ordinal, -1 on the CPU.
  std::int32_t device() const { return device_; }
  Determinism determinism() const { return determinism_; }

  // Creates the call that these arguments are. Throws where the library refuses it.
  OwnedCall create_call(hstujit_context* context, bool deterministic) const;

  // Appends what a plan follows from, and nothing else. Two calls have the same words where they have the same plan.
  void append_key(std::vector<std::uint64_t>& words) const;

 private:
  bool is_given(int at) const { return given_[at].name != nullptr; }
  bool is_tensor(int at) const { return is_given(at) && given_[at].kind == HSTUJIT_GIVEN_TENSOR; }
  void take(int at, StableIValue value) noexcept;
  void take_declared(StableListHandle list) noexcept;
  void give_back(int at) noexcept;
  void describe_tensor(int at);

  const Operator& op_;
  int count_;
  std::array<hstujit_given, kMaxArguments> given_;  // without a name: it is not given
  std::array<void*, kMaxArguments> handles_;        // of tensors and texts
  std::array<DLTensor, kMaxArguments> tensors_;
  bool has_room_ = true;  // for what is declared
  std::int32_t device_ = -1;
  Determinism determinism_ = Determinism::kAny;
};

}  // namespace hstujit::torch
