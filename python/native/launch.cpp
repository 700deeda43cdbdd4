#include "python/native/launch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "python/native/sizes.h"

namespace hstujit::torch {
namespace {

// Makes the device of a call current for as long as it lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(std::int32_t device) {
    thread_local bool has_launched = false;
    std::int32_t current = -1;
    check(functions().aoti_torch_get_current_device_index(&current), "aoti_torch_get_current_device_index");
    if (current == device && has_launched) return;
    check(functions().aoti_torch_create_device_guard(device, &guard_), "aoti_torch_create_device_guard");
    try {
      check_callback(callbacks().enter(device));
    } catch (...) {
      functions().aoti_torch_delete_device_guard(guard_);
      throw;
    }
    has_launched = true;
  }
  ~CurrentDevice() {
    if (guard_) functions().aoti_torch_delete_device_guard(guard_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  DeviceGuardHandle guard_ = nullptr;
};

// How many places an axis takes: rows are padded to a multiple of `row_elements`, and a size of 0 counts as 1.
std::int64_t extent(std::span<const std::int64_t> sizes, std::size_t axis, std::int64_t row_elements) {
  const std::int64_t size = std::max<std::int64_t>(sizes[axis], 1);
  const bool is_row = axis + 1 == sizes.size() && axis > 0;
  return is_row ? (size + row_elements - 1) / row_elements * row_elements : size;
}

// `strides` has room for those of the tensor, whose rows begin at multiples of `row_elements`.
OwnedTensor empty(std::span<const std::int64_t> sizes, std::int32_t dtype, std::int32_t device, std::int64_t* strides,
                  std::int64_t row_elements) {
  const Functions& torch = functions();
  std::int64_t elements = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = elements;
    elements *= extent(sizes, axis, row_elements);
  }
  AtenTensorHandle made = nullptr;
  const auto rank = static_cast<std::int32_t>(sizes.size());
  const std::int32_t type = device < 0 ? torch.aoti_torch_device_type_cpu() : torch.aoti_torch_device_type_cuda();
  if (torch.aoti_torch_empty_strided(rank, sizes.data(), strides, dtype, type, std::max(device, 0), &made)) {
    check_callback(callbacks().allocate(rank, sizes.data(), dtype, device));
    throw std::runtime_error("PyTorch has no memory for an output");
  }
  return OwnedTensor(made);
}

OwnedTensor empty(std::int64_t size, std::int32_t dtype, std::int32_t device) {
  std::int64_t stride = 1;
  return empty(std::span(&size, 1), dtype, device, &stride, 1);
}

void* data_of(const OwnedTensor& tensor) {
  void* data = nullptr;
  check(functions().torch_get_mutable_data_ptr(tensor.get(), &data), "torch_get_mutable_data_ptr");
  return data;
}

// Everything of one call that lies on the stack of its thread.
class Launch {
 public:
  Launch(std::int32_t index, const Arguments& arguments, Plan& plan)
      : index_(index), arguments_(arguments), plan_(plan) {}

  void allocate();
  void describe();
  void run();
  OwnedTensor take_output(int output) {
    return output < 0 ? empty(0, plan_.arguments[first_output()].dtype, device()) : std::move(outputs_[output]);
  }

 private:
  std::int32_t device() const { return arguments_.call().device; }
  std::size_t first_output() const;
  // Whether the bytes of each output are a number of 64 bits.
  bool has_room(std::span<const std::int64_t> sizes) const;
  AlignedOp& aligned_op();

  const std::int32_t index_;
  const Arguments& arguments_;
  Plan& plan_;
  std::array<OwnedTensor, kMaxOutputs> outputs_;
  std::array<std::int64_t, kMaxOutputs * kMaxRank> sizes_, strides_;  // of outputs, kMaxRank each
  std::array<hstujit_value, kMaxArguments> values_;
  std::array<DLTensor, kMaxArguments> tensors_;
  std::array<std::uint64_t, kMaxArguments> bits_;
};

std::size_t Launch::first_output() const {
  std::size_t at = 0;
  while (plan_.arguments[at].source >= 0) ++at;
  return at;
}

bool Launch::has_room(std::span<const std::int64_t> sizes) const {
  constexpr std::int64_t kLargestElement = 8;
  for (const hstujit_torch_argument& argument : plan_.arguments) {
    if (argument.source >= 0) continue;
    std::int64_t bytes = kLargestElement;
    const std::span<const std::int64_t> own = sizes.first(static_cast<std::size_t>(argument.rank));
    for (std::size_t axis = 0; axis < own.size(); ++axis)
      if (__builtin_mul_overflow(bytes, extent(own, axis, argument.row_elements), &bytes)) return false;
    sizes = sizes.subspan(own.size());
  }
  return true;
}

void Launch::allocate() {
  std::array<std::int64_t, kMaxOutputs * kMaxRank> packed;
  Last last;
  if (!evaluate(plan_.program, arguments_, packed, last) || !has_room(packed)) {
    check_callback(callbacks().explain(index_, &arguments_.call(), last.input, last.value));
    throw std::runtime_error("the size of an output is more than 64 bits");
  }
  std::size_t used = 0;
  for (const hstujit_torch_argument& argument : plan_.arguments) {
    if (argument.source >= 0) continue;
    const int output = -1 - argument.source;
    const std::span<const std::int64_t> sizes(packed.data() + used, static_cast<std::size_t>(argument.rank));
    used += sizes.size();
    std::copy(sizes.begin(), sizes.end(), sizes_.begin() + output * kMaxRank);
    outputs_[output] =
        empty(sizes, argument.dtype, device(), strides_.data() + output * kMaxRank, argument.row_elements);
  }
}

// Address and strides in bytes, or-ed, but for those of the innermost axis and of axes with one element.
std::uint64_t alignment_bits(const DLTensor& tensor) {
  auto bits = reinterpret_cast<std::uintptr_t>(tensor.data);
  for (int axis = 0; axis + 1 < tensor.ndim; ++axis)
    if (tensor.shape[axis] != 1) bits |= static_cast<std::uint64_t>(tensor.strides[axis] * (tensor.dtype.bits / 8));
  return bits;
}

void Launch::describe() {
  int tensors = 0;
  for (std::size_t at = 0; at < plan_.arguments.size(); ++at) {
    const hstujit_torch_argument& argument = plan_.arguments[at];
    if (argument.kind == HSTUJIT_TORCH_REAL) {
      values_[at].real = arguments_.input(argument.source).real;
    } else if (argument.kind == HSTUJIT_TORCH_INTEGER) {
      values_[at].integer = arguments_.input(argument.source).integer;
    } else {
      DLTensor& tensor = tensors_[tensors];
      tensor.ndim = argument.rank;
      tensor.dtype = {static_cast<std::uint8_t>(argument.type_code), static_cast<std::uint8_t>(argument.type_bits), 1};
      tensor.byte_offset = 0;
      std::int32_t index = device();
      if (argument.source >= 0) {
        const hstujit_torch_tensor& input = arguments_.tensor(argument.source);
        tensor.data = const_cast<void*>(input.data);  // an input is read only
        tensor.shape = const_cast<std::int64_t*>(input.sizes);
        tensor.strides = const_cast<std::int64_t*>(input.strides);
        index = input.device;
      } else {
        const int output = -1 - argument.source;
        tensor.data = data_of(outputs_[output]);
        tensor.shape = sizes_.data() + output * kMaxRank;
        tensor.strides = strides_.data() + output * kMaxRank;
      }
      tensor.device = index < 0 ? DLDevice{kDLCPU, 0} : DLDevice{kDLCUDA, index};
      values_[at].tensor = &tensor;
      bits_[tensors++] = alignment_bits(tensor);
    }
  }
}

AlignedOp& Launch::aligned_op() {
  for (int at = 0; at < Plan::kMaxAlignments; ++at) {
    AlignedOp* op = plan_.ops[at].load(std::memory_order_acquire);
    if (!op) {
      check_callback(callbacks().align(index_, &arguments_.call(), &plan_, plan_.owner, bits_.data()));
      op = plan_.ops[at].load(std::memory_order_acquire);
      if (!op) throw std::logic_error("no op was made for the alignment of the tensors");
    }
    if (op->can_read(bits_.data())) return *op;
  }
  throw std::logic_error("an operator has more alignments than this library reads");
}

void Launch::run() {
  AlignedOp& aligned = aligned_op();
  const std::int64_t rows = plan_.max_rows < 0 ? 1 : arguments_.input(plan_.max_rows).integer;
  aligned.prepare(index_, rows, device());
  const std::size_t count = plan_.arguments.size();
  if (device() < 0) {
    check_status(index_, hstujit_launch(aligned.op(), values_.data(), count, nullptr, 0, nullptr));
    return;
  }
  std::size_t bytes = 0;
  check_status(index_, hstujit_workspace_size(aligned.op(), values_.data(), count, &bytes));
  void* stream = nullptr;
  check(functions().aoti_torch_get_current_cuda_stream(device(), &stream), "aoti_torch_get_current_cuda_stream");
  OwnedTensor workspace;  // goes back to the allocator, which gives it to later work on the same stream alone
  if (bytes != 0) {
    workspace = empty(static_cast<std::int64_t>(bytes), functions().aoti_torch_dtype_uint8(), device());
  }
  check_status(index_, hstujit_launch(aligned.op(), values_.data(), count, bytes != 0 ? data_of(workspace) : nullptr,
                                      bytes, stream));
}

}  // namespace

std::shared_ptr<Plan> plan_of(Registered& registered, const Arguments& arguments) {
  PlanTable& plans = registered.plans;
  thread_local std::vector<std::uint64_t> words;
  words.clear();
  arguments.append_key(words);
  if (auto found = plans.find(words)) return found;
  PlanTable::Key key = words;  // Python may call operators on this thread
  const std::uint64_t generation = plans.generation();
  auto made = std::make_shared<Plan>();
  check_callback(callbacks().plan(registered.index, &arguments.call(), made.get()));
  return plans.keep(std::move(key), std::move(made), generation);
}

void launch(const Registered& registered, const Arguments& arguments, Plan& plan, std::span<OwnedTensor> outputs) {
  std::optional<CurrentDevice> device;
  if (arguments.call().device >= 0) device.emplace(arguments.call().device);
  Launch launch(registered.index, arguments, plan);
  launch.allocate();
  launch.describe();
  launch.run();
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = launch.take_output(plan.schema_outputs[i]);
}

void launch(Registered& registered, StableIValue* stack) {
  StackArguments arguments(registered.op, stack);
  arguments.describe();
  std::array<OwnedTensor, kMaxOutputs> made;
  const std::span outputs(made.data(), static_cast<std::size_t>(registered.op.outputs));
  launch(registered, arguments, *plan_of(registered, arguments), outputs);
  // Nothing fails once the stack has an output.
  for (std::size_t i = 0; i < outputs.size(); ++i) stack[i] = reinterpret_cast<StableIValue>(outputs[i].release());
}

}  // namespace hstujit::torch
