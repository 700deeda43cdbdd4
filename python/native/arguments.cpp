#include "python/native/arguments.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "python/native/context.h"

namespace hstujit::torch {

void check(AOTITorchError error, const char* function) {
  if (error) throw std::runtime_error(std::string("PyTorch's ") + function + " failed");
}

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
#define HSTUJIT_DATA_TYPE(name, code, bits) {&Functions::name, {code, bits, 1}},
    HSTUJIT_TORCH_DATA_TYPES(HSTUJIT_DATA_TYPE)
#undef HSTUJIT_DATA_TYPE
};

DLDataType dlpack_type(std::int32_t dtype) {
  for (const DataType& known : kDataTypes)
    if ((functions().*known.number)() == dtype) return known.type;
  return {kDLOpaqueHandle, static_cast<std::uint8_t>(dtype), 1};
}

}  // namespace

std::int32_t torch_type(DLDataType type) {
  for (const DataType& known : kDataTypes) {
    if (known.type.code == type.code && known.type.bits == type.bits && type.lanes == 1)
      return (functions().*known.number)();
  }
  return -1;
}

Arguments::Arguments(const Operator& op, StableIValue* stack) noexcept
    : op_(op), count_(static_cast<int>(op.slots.size())) {
  for (int at = 0; at < static_cast<int>(op.slots.size()); ++at) {
    given_[at].name = nullptr;
    if (!op.slots[at].is_optional)
      take(at, stack[at]);
    else if (stack[at] != 0 && at == op.declared)
      take_declared(std::bit_cast<StableListHandle>(unbox(stack[at])));
    else if (stack[at] != 0)
      take(at, unbox(stack[at]));
  }
}

void Arguments::take(int at, StableIValue value) noexcept {
  hstujit_given& given = given_[at];
  given = {op_.slots[at].name.c_str(), op_.slots[at].kind, {}, nullptr};
  if (given.kind == HSTUJIT_GIVEN_REAL)
    given.value.real = std::bit_cast<double>(value);
  else if (given.kind == HSTUJIT_GIVEN_FLAG)
    given.value.integer = (value & 0xff) != 0;
  else if (given.kind == HSTUJIT_GIVEN_INTEGER)
    given.value.integer = static_cast<std::int64_t>(value);
  else
    handles_[at] = std::bit_cast<void*>(value);
}

void Arguments::take_declared(StableListHandle list) noexcept {
  const Functions& torch = functions();
  std::size_t size = 0;
  torch.torch_list_size(list, &size);
  for (std::size_t i = 0; i < size; ++i) {
    StableIValue element = 0;
    if (torch.torch_list_get_item(list, i, &element)) continue;
    OwnedTensor tensor(std::bit_cast<AtenTensorHandle>(element));
    has_room_ = count_ < kMaxArguments;
    if (!has_room_) continue;
    handles_[count_] = tensor.release();
    given_[count_++] = {op_.declares.c_str(), HSTUJIT_GIVEN_TENSOR, {}, nullptr};
  }
  torch.torch_delete_list(list);
}

void Arguments::give_back(int at) noexcept {
  if (is_tensor(at)) functions().aoti_torch_delete_tensor_object(tensor(at));
  if (is_given(at) && given_[at].kind == HSTUJIT_GIVEN_TEXT)
    functions().torch_delete_string(static_cast<StringHandle>(handles_[at]));
  given_[at].name = nullptr;
}

Arguments::~Arguments() {
  for (int at = 0; at < count_; ++at) give_back(at);
}

void Arguments::describe() {
  if (!has_room_) throw std::runtime_error("operand_tensors has more tensors than this library supports");
  for (int at = 0; at < count_; ++at) {
    if (is_tensor(at)) {
      describe_tensor(at);
    } else if (is_given(at) && given_[at].kind == HSTUJIT_GIVEN_TEXT) {
      std::size_t length = 0;
      HSTUJIT_CALL_TORCH(torch_string_length, static_cast<StringHandle>(handles_[at]), &length);
      HSTUJIT_CALL_TORCH(torch_string_c_str, static_cast<StringHandle>(handles_[at]), &given_[at].text);
      if (std::strlen(given_[at].text) != length)
        throw_failure(HSTUJIT_INVALID_ARGUMENT, op_.slots[at].name + " holds a NUL character; no text has one");
    }
  }
  const bool is_on_gpu = is_tensor(op_.first) && tensors_[op_.first].device.device_type == kDLCUDA;
  device_ = is_on_gpu ? tensors_[op_.first].device.device_id : -1;
  determinism_ = torch::determinism();
}

void Arguments::describe_tensor(int at) {
  const AtenTensorHandle handle = tensor(at);
  // PyTorch takes None for a tensor that must be there, and gives one without anything: it has no strides to ask for.
  // Here it is none, as one that may be left out; no plan is made of such a call.
  bool is_defined = true;
  if (functions().aoti_torch_is_defined) HSTUJIT_CALL_TORCH(aoti_torch_is_defined, handle, &is_defined);
  if (!is_defined) return give_back(at);
  DLTensor& described = tensors_[at];
  std::int64_t rank = 0;
  std::int32_t dtype = 0, device_type = 0;
  const void* data = nullptr;
  HSTUJIT_CALL_TORCH(aoti_torch_get_dim, handle, &rank);
  HSTUJIT_CALL_TORCH(aoti_torch_get_sizes, handle, &described.shape);
  HSTUJIT_CALL_TORCH(aoti_torch_get_strides, handle, &described.strides);
  HSTUJIT_CALL_TORCH(aoti_torch_get_dtype, handle, &dtype);
  HSTUJIT_CALL_TORCH(aoti_torch_get_device_type, handle, &device_type);
  HSTUJIT_CALL_TORCH(torch_get_const_data_ptr, handle, &data);
  described.device = {kDLCPU, 0};
  if (device_type != functions().aoti_torch_device_type_cpu()) {
    described.device.device_type = kDLCUDA;
    HSTUJIT_CALL_TORCH(aoti_torch_get_device_index, handle, &described.device.device_id);
  }
  described.data = const_cast<void*>(data);  // a launch reads it alone
  described.ndim = static_cast<std::int32_t>(rank);
  described.dtype = dlpack_type(dtype);
  described.byte_offset = 0;
  given_[at].value.tensor = &described;
}

OwnedCall Arguments::create_call(hstujit_context* context, bool deterministic) const {
  std::vector<hstujit_given> given;
  std::vector<std::string> places;
  places.reserve(kMaxArguments);
  for (int at = 0; at < count_; ++at) {
    const bool is_declared = at >= static_cast<int>(op_.slots.size());
    // A schema has no word for a tensor that must be there.
    if (!is_declared && op_.slots[at].is_required && !is_given(at))
      throw_failure(HSTUJIT_INVALID_ARGUMENT, op_.slots[at].name + " is None; it must be a tensor");
    if (!is_given(at)) continue;
    given.push_back(given_[at]);
    if (is_declared)
      given.back().name = places.emplace_back(op_.declares + "[" + std::to_string(places.size()) + "]").c_str();
  }
  auto options = HSTUJIT_INIT(hstujit_op_options);
  options.direction = op_.direction;
  options.backend = device_ < 0 ? HSTUJIT_BACKEND_HOST : HSTUJIT_BACKEND_CUDA;
  options.deterministic = deterministic ? 1 : 0;
  hstujit_call* call = nullptr;
  check_status(op_.name, hstujit_call_create(context, op_.op.c_str(), &options, given.data(), given.size(), &call));
  return OwnedCall(call);
}

void Arguments::append_key(std::vector<std::uint64_t>& words) const {
  words.push_back((device_ < 0 ? 0u : 1u) | static_cast<std::uint64_t>(determinism_) << 1 |
                  static_cast<std::uint64_t>(count_) << 8);
  for (int at = 0; at < count_; ++at) {
    if (is_tensor(at)) {
      const auto type = std::bit_cast<std::uint32_t>(tensors_[at].dtype);
      words.push_back(1 | static_cast<std::uint64_t>(tensors_[at].ndim) << 1 | std::uint64_t{type} << 32);
    } else if (!is_given(at) || !op_.slots[at].is_parameter) {
      words.push_back(is_given(at) ? 1 : 0);
    } else if (given_[at].kind != HSTUJIT_GIVEN_TEXT) {
      words.push_back(static_cast<std::uint64_t>(given_[at].value.integer));
    } else {
      const std::string_view text = given_[at].text;
      words.push_back(text.size());
      for (std::size_t from = 0; from < text.size(); from += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + from, std::min(sizeof word, text.size() - from));
        words.push_back(word);
      }
    }
  }
  for (const auto& [at, axis] : op_.axes) {
    const bool there = is_tensor(at) && axis < tensors_[at].ndim;
    words.push_back(there ? static_cast<std::uint64_t>(tensors_[at].shape[axis]) : ~std::uint64_t{0});
  }
  for (const int at : op_.forms)
    words.push_back(is_tensor(at) && tensors_[at].ndim == 1 && tensors_[at].shape[0] == 1 ? 1 : 0);
}

}  // namespace hstujit::torch
