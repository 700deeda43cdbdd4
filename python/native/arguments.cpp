#include "python/native/arguments.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace hstujit::torch {

void check(AOTITorchError error, const char* function) {
  if (error) throw std::runtime_error(std::string("PyTorch's ") + function + " failed");
}

OwnedTensor& OwnedTensor::operator=(OwnedTensor&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

OwnedTensor::~OwnedTensor() {
  if (handle_) functions().aoti_torch_delete_tensor_object(handle_);
}

AtenTensorHandle OwnedTensor::release() { return std::exchange(handle_, nullptr); }

namespace {

// The value of an optional one, whose box is given back.
StableIValue unbox(StableIValue value) {
  auto* box = std::bit_cast<StableIValue*>(value);
  const StableIValue inner = *box;
  if (functions().torch_delete_stable_ivalue)
    functions().torch_delete_stable_ivalue(box);
  else
    delete box;  // as torch/csrc/stable does where there is no function for it
  return inner;
}

std::uint64_t describe(std::int32_t dtype, std::int32_t rank) {
  return 1 | static_cast<std::uint64_t>(static_cast<std::uint16_t>(dtype)) << 16 |
         static_cast<std::uint64_t>(rank) << 32;
}

}  // namespace

Arguments::Arguments(const Operator& op) noexcept : op_(op) {
  for (int i = 0; i < op.inputs; ++i) handles_[i] = nullptr;
}

hstujit_torch_value& Arguments::value_of(const hstujit_torch_slot& slot) {
  auto& group = slot.group == HSTUJIT_TORCH_INPUT       ? inputs_
                : slot.group == HSTUJIT_TORCH_PARAMETER ? parameters_
                                                        : rows_;
  return group[slot.index];
}

void Arguments::make_call() {
  const std::int32_t device = is_tensor(op_.first) ? tensor(op_.first).device : -1;
  call_ = {inputs_.data(), parameters_.data(), rows_.data(), device, determinism()};
}

StackArguments::StackArguments(const Operator& op, StableIValue* stack) noexcept : Arguments(op) {
  for (int i = 0; i < op.parameters; ++i) strings_[i] = nullptr;
  for (std::size_t at = 0; at < op.slots.size(); ++at) {
    const hstujit_torch_slot& slot = op.slots[at];
    hstujit_torch_value& value = value_of(slot);
    value.kind = HSTUJIT_TORCH_NONE;
    if (!slot.optional)
      take(slot, stack[at], value);
    else if (stack[at] != 0)
      take(slot, unbox(stack[at]), value);
  }
}

void StackArguments::take(const hstujit_torch_slot& slot, StableIValue value, hstujit_torch_value& to) noexcept {
  to.kind = slot.kind;
  switch (slot.kind) {
    case HSTUJIT_TORCH_TENSOR:
      handles_[slot.index] = std::bit_cast<AtenTensorHandle>(value);
      to.tensor = &tensors_[slot.index];
      break;
    case HSTUJIT_TORCH_REAL:
      to.real = std::bit_cast<double>(value);
      break;
    case HSTUJIT_TORCH_BOOLEAN:
      to.integer = (value & 0xff) != 0;
      break;
    case HSTUJIT_TORCH_TEXT:
      strings_[slot.index] = std::bit_cast<StringHandle>(value);
      break;
    default:
      to.integer = static_cast<std::int64_t>(value);
  }
}

StackArguments::~StackArguments() {
  for (int i = 0; i < op_.inputs; ++i)
    if (handles_[i]) functions().aoti_torch_delete_tensor_object(handles_[i]);
  for (int i = 0; i < op_.parameters; ++i)
    if (strings_[i]) functions().torch_delete_string(strings_[i]);
}

void StackArguments::describe() {
  const Functions& torch = functions();
  const std::int32_t cpu = torch.aoti_torch_device_type_cpu();
  for (int i = 0; i < op_.inputs; ++i) {
    if (!handles_[i]) continue;
    drop_undefined(i);
    const AtenTensorHandle handle = handles_[i];
    if (!handle) continue;
    hstujit_torch_tensor& tensor = tensors_[i];
    std::int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
    check(torch.aoti_torch_get_dim(handle, &rank), "aoti_torch_get_dim");
    check(torch.aoti_torch_get_sizes(handle, &sizes), "aoti_torch_get_sizes");
    check(torch.aoti_torch_get_strides(handle, &strides), "aoti_torch_get_strides");
    check(torch.aoti_torch_get_dtype(handle, &tensor.dtype), "aoti_torch_get_dtype");
    check(torch.aoti_torch_get_device_type(handle, &tensor.device_type), "aoti_torch_get_device_type");
    tensor.device = -1;
    if (tensor.device_type != cpu)
      check(torch.aoti_torch_get_device_index(handle, &tensor.device), "aoti_torch_get_device_index");
    check(torch.torch_get_const_data_ptr(handle, &tensor.data), "torch_get_const_data_ptr");
    tensor.rank = static_cast<std::int32_t>(rank);
    tensor.sizes = sizes;
    tensor.strides = strides;
  }
  for (int i = 0; i < op_.parameters; ++i) {
    if (!strings_[i]) continue;
    std::size_t size = 0;
    check(torch.torch_string_length(strings_[i], &size), "torch_string_length");
    check(torch.torch_string_c_str(strings_[i], &parameters_[i].text), "torch_string_c_str");
    parameters_[i].size = static_cast<std::int32_t>(size);
  }
  make_call();
}

// PyTorch takes None for a tensor that must be there, and gives one without anything: it has no strides to ask for.
// Here it is none, as one that may be left out; no plan is made of such a call.
void StackArguments::drop_undefined(int input) {
  const Functions& torch = functions();
  bool is_defined = true;
  if (!torch.aoti_torch_is_defined) return;
  check(torch.aoti_torch_is_defined(handles_[input], &is_defined), "aoti_torch_is_defined");
  if (is_defined) return;
  torch.aoti_torch_delete_tensor_object(std::exchange(handles_[input], nullptr));
  inputs_[input].kind = HSTUJIT_TORCH_NONE;
}

void Arguments::append_key(std::vector<std::uint64_t>& words) const {
  words.push_back((call_.device < 0 ? 0u : 1u) | static_cast<std::uint64_t>(call_.determinism) << 1);
  for (int i = 0; i < op_.inputs; ++i) {
    if (is_tensor(i))
      words.push_back(torch::describe(tensors_[i].dtype, tensors_[i].rank));
    else
      words.push_back(inputs_[i].kind == HSTUJIT_TORCH_NONE ? 0 : 1);
  }
  for (const auto& [input, axis] : op_.axes) {
    const bool there = is_tensor(input) && axis < tensors_[input].rank;
    words.push_back(there ? static_cast<std::uint64_t>(tensors_[input].sizes[axis]) : ~std::uint64_t{0});
  }
  for (const int input : op_.forms) {
    const hstujit_torch_tensor& tensor = tensors_[input];
    words.push_back(is_tensor(input) && tensor.rank == 1 && tensor.sizes[0] == 1 ? 1 : 0);
  }
  for (int i = 0; i < op_.parameters; ++i) {
    if (parameters_[i].kind != HSTUJIT_TORCH_TEXT) {
      words.push_back(static_cast<std::uint64_t>(parameters_[i].integer));
      continue;
    }
    const auto size = static_cast<std::size_t>(parameters_[i].size);
    words.push_back(size);
    for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, parameters_[i].text + at, std::min(sizeof word, size - at));
      words.push_back(word);
    }
  }
  for (int i = 0; i < op_.rows; ++i) words.push_back(rows_[i].kind == HSTUJIT_TORCH_NONE ? 0 : 1);
}

}  // namespace hstujit::torch
