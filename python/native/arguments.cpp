#include "python/native/arguments.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "python/native/failure.h"

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

struct DataType {
  std::int32_t (*Functions::*number)();
  DLDataType type;
};

constexpr DataType kDataTypes[] = {
    {&Functions::aoti_torch_dtype_bfloat16, {kDLBfloat, 16, 1}},
    {&Functions::aoti_torch_dtype_float32, {kDLFloat, 32, 1}},
    {&Functions::aoti_torch_dtype_float16, {kDLFloat, 16, 1}},
    {&Functions::aoti_torch_dtype_int64, {kDLInt, 64, 1}},
    {&Functions::aoti_torch_dtype_int32, {kDLInt, 32, 1}},
    {&Functions::aoti_torch_dtype_float64, {kDLFloat, 64, 1}},
    {&Functions::aoti_torch_dtype_int16, {kDLInt, 16, 1}},
    {&Functions::aoti_torch_dtype_int8, {kDLInt, 8, 1}},
    {&Functions::aoti_torch_dtype_uint8, {kDLUInt, 8, 1}},
    {&Functions::aoti_torch_dtype_uint16, {kDLUInt, 16, 1}},
    {&Functions::aoti_torch_dtype_uint32, {kDLUInt, 32, 1}},
    {&Functions::aoti_torch_dtype_uint64, {kDLUInt, 64, 1}},
    {&Functions::aoti_torch_dtype_bool, {kDLBool, 8, 1}},
    {&Functions::aoti_torch_dtype_complex32, {kDLComplex, 32, 1}},
    {&Functions::aoti_torch_dtype_complex64, {kDLComplex, 64, 1}},
    {&Functions::aoti_torch_dtype_complex128, {kDLComplex, 128, 1}},
    // Codes of DLPack 1.1, which its header here does not name yet.
    {&Functions::aoti_torch_dtype_float8_e4m3fn, {10, 8, 1}},
    {&Functions::aoti_torch_dtype_float8_e4m3fnuz, {11, 8, 1}},
    {&Functions::aoti_torch_dtype_float8_e5m2, {12, 8, 1}},
    {&Functions::aoti_torch_dtype_float8_e5m2fnuz, {13, 8, 1}},
};

std::uint64_t describe(std::int32_t dtype, std::int32_t rank) {
  return 1 | static_cast<std::uint64_t>(static_cast<std::uint16_t>(dtype)) << 16 |
         static_cast<std::uint64_t>(rank) << 32;
}

}  // namespace

DLDataType dlpack_type(std::int32_t dtype) {
  for (const DataType& known : kDataTypes)
    if ((functions().*known.number)() == dtype) return known.type;
  return {kDLOpaqueHandle, static_cast<std::uint8_t>(dtype), 1};
}

std::int32_t torch_type(DLDataType type) {
  for (const DataType& known : kDataTypes) {
    if (known.type.code == type.code && known.type.bits == type.bits && type.lanes == 1)
      return (functions().*known.number)();
  }
  return -1;
}

Value& Arguments::value_of(const Slot& slot) {
  auto& group = slot.group == Group::kInput ? inputs_ : slot.group == Group::kParameter ? parameters_ : rows_;
  return group[slot.index];
}

hstujit_call* Arguments::create_call(hstujit_context* context, bool deterministic) const {
  std::array<DLTensor, kMaxArguments> tensors;
  std::vector<hstujit_given> given;
  const auto describe_tensor = [&](int input) {
    const Tensor& described = tensor(input);
    DLTensor& made = tensors[input];
    made = {};
    made.ndim = described.rank;
    made.shape = const_cast<std::int64_t*>(described.sizes);
    made.dtype = dlpack_type(described.dtype);
    return &made;
  };
  for (const Slot& slot : op_.slots) {
    if (slot.group == Group::kDeclared) continue;
    const auto& group = slot.group == Group::kInput ? inputs_ : slot.group == Group::kParameter ? parameters_ : rows_;
    const Value& value = group[slot.index];
    hstujit_given argument{slot.name.c_str(), HSTUJIT_GIVEN_INTEGER, {}, nullptr};
    switch (value.kind) {
      case Kind::kNone:
        // A schema has no word for a tensor that must be there.
        if (slot.group == Group::kInput && op_.required[static_cast<std::size_t>(slot.index)])
          throw_failure(HSTUJIT_INVALID_ARGUMENT, slot.name + " is None; it must be a tensor");
        continue;
      case Kind::kTensor:
        argument.kind = HSTUJIT_GIVEN_TENSOR;
        argument.value.tensor = describe_tensor(slot.index);
        break;
      case Kind::kReal:
        argument.kind = HSTUJIT_GIVEN_REAL;
        argument.value.real = value.real;
        break;
      case Kind::kFlag:
        argument.kind = HSTUJIT_GIVEN_FLAG;
        argument.value.integer = value.integer;
        break;
      case Kind::kText:
        argument.kind = HSTUJIT_GIVEN_TEXT;
        argument.text = value.text;
        break;
      case Kind::kInteger:
      case Kind::kTensors:
        argument.value.integer = value.integer;
    }
    given.push_back(argument);
  }
  std::vector<std::string> places(declared_);
  for (std::size_t i = 0; i < declared_; ++i) {
    places[i] = op_.declares + "[" + std::to_string(i) + "]";
    hstujit_given argument{places[i].c_str(), HSTUJIT_GIVEN_TENSOR, {}, nullptr};
    argument.value.tensor = describe_tensor(static_cast<int>(op_.inputs.size() + i));
    given.push_back(argument);
  }
  auto options = HSTUJIT_INIT(hstujit_op_options);
  options.direction = op_.direction;
  options.backend = device_ < 0 ? HSTUJIT_BACKEND_HOST : HSTUJIT_BACKEND_CUDA;
  options.deterministic = deterministic ? 1 : 0;
  hstujit_call* call = nullptr;
  check_status(op_.name, hstujit_call_create(context, op_.op.c_str(), &options, given.data(), given.size(), &call));
  return call;
}

Arguments::Arguments(const Operator& op, StableIValue* stack) noexcept : op_(op) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) handles_[i] = nullptr;
  for (std::size_t i = 0; i < op.parameters.size(); ++i) strings_[i] = nullptr;
  for (std::size_t at = 0; at < op.slots.size(); ++at) {
    const Slot& slot = op.slots[at];
    if (slot.group == Group::kDeclared) {
      if (stack[at] != 0) take_declared(std::bit_cast<StableListHandle>(unbox(stack[at])));
      continue;
    }
    Value& value = value_of(slot);
    value.kind = Kind::kNone;
    if (!slot.optional)
      take(slot, stack[at], value);
    else if (stack[at] != 0)
      take(slot, unbox(stack[at]), value);
  }
}

void Arguments::take_declared(StableListHandle list) noexcept {
  const Functions& torch = functions();
  std::size_t size = 0;
  torch.torch_list_size(list, &size);
  for (std::size_t i = 0; i < size; ++i) {
    StableIValue element = 0;
    if (torch.torch_list_get_item(list, i, &element)) continue;
    OwnedTensor tensor(std::bit_cast<AtenTensorHandle>(element));
    const int place = input_count();
    has_room_ = place < kMaxArguments;
    if (!has_room_) continue;
    handles_[place] = tensor.release();
    inputs_[place].kind = Kind::kTensor;
    inputs_[place].tensor = &tensors_[place];
    ++declared_;
  }
  torch.torch_delete_list(list);
}

void Arguments::take(const Slot& slot, StableIValue value, Value& to) noexcept {
  to.kind = slot.kind;
  switch (slot.kind) {
    case Kind::kTensor:
      handles_[slot.index] = std::bit_cast<AtenTensorHandle>(value);
      to.tensor = &tensors_[slot.index];
      break;
    case Kind::kReal:
      to.real = std::bit_cast<double>(value);
      break;
    case Kind::kFlag:
      to.integer = (value & 0xff) != 0;
      break;
    case Kind::kText:
      strings_[slot.index] = std::bit_cast<StringHandle>(value);
      break;
    default:
      to.integer = static_cast<std::int64_t>(value);
  }
}

Arguments::~Arguments() {
  for (int i = 0; i < input_count(); ++i)
    if (handles_[i]) functions().aoti_torch_delete_tensor_object(handles_[i]);
  for (int i = 0; i < static_cast<int>(op_.parameters.size()); ++i)
    if (strings_[i]) functions().torch_delete_string(strings_[i]);
}

void Arguments::describe() {
  const Functions& torch = functions();
  const std::int32_t cpu = torch.aoti_torch_device_type_cpu();
  if (!has_room_) throw std::runtime_error("operand_tensors has more tensors than this library has room for");
  for (int i = 0; i < input_count(); ++i) {
    if (!handles_[i]) continue;
    drop_undefined(i);
    const AtenTensorHandle handle = handles_[i];
    if (!handle) continue;
    Tensor& tensor = tensors_[i];
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
  for (int i = 0; i < static_cast<int>(op_.parameters.size()); ++i) {
    if (!strings_[i]) continue;
    std::size_t size = 0;
    check(torch.torch_string_length(strings_[i], &size), "torch_string_length");
    check(torch.torch_string_c_str(strings_[i], &parameters_[i].text), "torch_string_c_str");
    parameters_[i].size = static_cast<std::int32_t>(size);
  }
  device_ = is_tensor(op_.first) ? tensor(op_.first).device : -1;
  determinism_ = torch::determinism();
}

// PyTorch takes None for a tensor that must be there, and gives one without anything: it has no strides to ask for.
// Here it is none, as one that may be left out; no plan is made of such a call.
void Arguments::drop_undefined(int input) {
  const Functions& torch = functions();
  bool is_defined = true;
  if (!torch.aoti_torch_is_defined) return;
  check(torch.aoti_torch_is_defined(handles_[input], &is_defined), "aoti_torch_is_defined");
  if (is_defined) return;
  torch.aoti_torch_delete_tensor_object(std::exchange(handles_[input], nullptr));
  inputs_[input].kind = Kind::kNone;
}

void Arguments::append_key(std::vector<std::uint64_t>& words) const {
  words.push_back((device_ < 0 ? 0u : 1u) | static_cast<std::uint64_t>(determinism_) << 1 | declared_ << 8);
  for (int i = 0; i < input_count(); ++i) {
    if (is_tensor(i))
      words.push_back(torch::describe(tensors_[i].dtype, tensors_[i].rank));
    else
      words.push_back(inputs_[i].kind == Kind::kNone ? 0 : 1);
  }
  for (const auto& [input, axis] : op_.axes) {
    const bool there = is_tensor(input) && axis < tensors_[input].rank;
    words.push_back(there ? static_cast<std::uint64_t>(tensors_[input].sizes[axis]) : ~std::uint64_t{0});
  }
  for (const int input : op_.forms) {
    const Tensor& tensor = tensors_[input];
    words.push_back(is_tensor(input) && tensor.rank == 1 && tensor.sizes[0] == 1 ? 1 : 0);
  }
  for (int i = 0; i < static_cast<int>(op_.parameters.size()); ++i) {
    if (parameters_[i].kind != Kind::kText) {
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
  for (int i = 0; i < static_cast<int>(op_.rows.size()); ++i) words.push_back(rows_[i].kind == Kind::kNone ? 0 : 1);
}

}  // namespace hstujit::torch
