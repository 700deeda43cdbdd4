#include "python/native/launch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "python/native/context.h"

namespace hstujit::torch {
namespace {

void* current_stream(std::int32_t device) {
  void* stream = nullptr;
  HSTUJIT_CALL_TORCH(aoti_torch_get_current_cuda_stream, device, &stream);
  return stream;
}

bool is_capturing(std::int32_t device) {
  std::int32_t status = 0;
  return functions().cudaStreamIsCapturing(current_stream(device), &status) == 0 && status != 0;
}

// Makes the device of a call current for as long as it lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(std::int32_t device) {
    thread_local bool has_launched = false;
    std::int32_t current = -1;
    HSTUJIT_CALL_TORCH(aoti_torch_get_current_device_index, &current);
    if (current == device && has_launched) return;
    HSTUJIT_CALL_TORCH(aoti_torch_create_device_guard, device, &guard_);
    // Calls of the CUDA runtime make the device's context this thread's; PyTorch may leave out the first.
    functions().cudaSetDevice(device);
    static_cast<void>(is_capturing(device));
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

// The last element of a tensor of offsets, 0 of none. On a GPU this waits for the stream.
std::int64_t last_of(const DLTensor& offsets, AtenTensorHandle handle) {
  const std::int64_t count = offsets.shape[0];
  if (count == 0) return 0;
  AtenTensorHandle view = nullptr;
  // Counts elements from where the tensor begins, wherever that is in its storage.
  HSTUJIT_CALL_TORCH(aoti_torch__reinterpret_tensor, handle, 0, nullptr, nullptr, (count - 1) * offsets.strides[0],
                     &view);
  const OwnedTensor last(view);
  std::int64_t value = 0;
  HSTUJIT_CALL_TORCH(aoti_torch_item_int64, view, &value);  // converts an int32
  return value;
}

// How many places an axis takes: rows are padded to a multiple of `row_elements`, and a size of 0 counts as 1.
std::int64_t extent(std::span<const std::int64_t> sizes, std::size_t axis, std::int64_t row_elements) {
  const std::int64_t size = std::max<std::int64_t>(sizes[axis], 1);
  const bool is_row = axis + 1 == sizes.size() && axis > 0;
  return is_row ? (size + row_elements - 1) / row_elements * row_elements : size;
}

// `strides` has room for those of the tensor, whose rows begin at multiples of `row_elements`.
OwnedTensor empty(std::span<const std::int64_t> sizes, DLDataType dtype, std::int32_t device, std::int64_t* strides,
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
  if (torch.aoti_torch_empty_strided(rank, sizes.data(), strides, torch_type(dtype), type, std::max(device, 0),
                                     &made)) {
    if (callbacks().allocate) check_callback(callbacks().allocate(elements * dtype.bits / 8, device) != 0);
    throw std::runtime_error("PyTorch has no memory for an output");
  }
  return OwnedTensor(made);
}

OwnedTensor empty(std::int64_t size, DLDataType dtype, std::int32_t device) {
  std::int64_t stride = 1;
  return empty(std::span(&size, 1), dtype, device, &stride, 1);
}

void* data_of(const OwnedTensor& tensor) {
  void* data = nullptr;
  HSTUJIT_CALL_TORCH(torch_get_mutable_data_ptr, tensor.get(), &data);
  return data;
}

// Whether kernels read a tensor where it is: its innermost stride is 1, and its address and all other strides are
// multiples of the argument's alignment.
bool is_read_in_place(const DLTensor& tensor, std::int64_t alignment) {
  const std::int64_t element = tensor.dtype.bits / 8;
  bool is_empty = false, is_read = reinterpret_cast<std::uintptr_t>(tensor.data) % alignment == 0;
  for (int axis = 0; axis < tensor.ndim; ++axis) {
    is_empty = is_empty || tensor.shape[axis] == 0;
    if (tensor.shape[axis] == 1) continue;
    const std::int64_t stride = tensor.strides[axis];
    is_read = is_read && (axis + 1 == tensor.ndim ? stride == 1 : stride * element % alignment == 0);
  }
  return is_read || is_empty;
}

// Everything of one call that lies on the stack of its thread.
class Launch {
 public:
  Launch(const Arguments& arguments, Plan& plan) : arguments_(arguments), plan_(plan) {}

  void take_inputs();
  void allocate();
  void run();
  OwnedTensor take_output(int output) {
    return output < 0 ? empty(0, first_output().dtype, device()) : std::move(outputs_[output]);
  }

 private:
  std::int32_t device() const { return arguments_.device(); }
  std::size_t count() const { return plan_.arguments.size(); }
  void check_status(hstujit_status status) const { torch::check_status(arguments_.op().name, status); }
  const hstujit_call_argument& first_output() const {
    return std::ranges::find(plan_.arguments, -1, &LaunchArgument::source)->described;
  }
  // Replaces a tensor that kernels do not read in place.
  struct Copy {
    OwnedTensor tensor;
    std::vector<std::int64_t> strides;
  };

  void copy(std::size_t at);
  // The op of the call, ready to be launched, and the bytes of its workspace.
  hstujit_op* prepare(std::size_t* bytes);
  hstujit_status prepare(hstujit_call* call, hstujit_op** op, std::size_t* bytes);

  const Arguments& arguments_;
  Plan& plan_;
  std::vector<Copy> copies_;
  std::array<OwnedTensor, kMaxOutputs> outputs_;
  std::array<std::int64_t, kMaxOutputs * kMaxRank> sizes_, strides_;  // of outputs, one behind the other
  std::array<hstujit_value, kMaxArguments> values_;
  std::array<DLTensor, kMaxArguments> tensors_;  // that this made
};

void Launch::copy(std::size_t at) {
  DLTensor& made = tensors_[at];
  made = *values_[at].tensor;
  Copy& copy = copies_.emplace_back();
  copy.strides.resize(static_cast<std::size_t>(made.ndim));
  copy.tensor = empty({made.shape, copy.strides.size()}, made.dtype, device(), copy.strides.data(), 1);
  HSTUJIT_CALL_TORCH(aoti_torch_copy_, copy.tensor.get(), arguments_.tensor(plan_.arguments[at].source), 0);
  made.data = data_of(copy.tensor);
  made.strides = copy.strides.data();
  values_[at].tensor = &made;
}

void Launch::take_inputs() {
  for (std::size_t at = 0; at < count(); ++at) {
    const auto& [described, source] = plan_.arguments[at];
    if (source < 0) continue;
    values_[at] = arguments_.value(source);
    if (described.kind == HSTUJIT_TENSOR && !is_read_in_place(*values_[at].tensor, described.alignment)) copy(at);
  }
}

void Launch::allocate() {
  std::array<std::int64_t, kMaxArguments> rows;
  for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
    const auto& [source, is_offsets] = plan_.rows[i];
    const hstujit_value& value = arguments_.value(source);
    rows[i] = is_offsets ? last_of(*value.tensor, arguments_.tensor(source)) : value.integer;
  }
  check_status(hstujit_call_output_sizes(plan_.call(), values_.data(), count(), rows.data(), plan_.rows.size(),
                                         sizes_.data(), sizes_.size()));
  std::size_t used = 0;
  for (std::size_t at = 0; at < count(); ++at) {
    const auto& [described, source] = plan_.arguments[at];
    if (source >= 0) continue;
    const auto rank = static_cast<std::size_t>(described.rank);
    std::int64_t *const sizes = sizes_.data() + used, *const strides = strides_.data() + used;
    OwnedTensor& output = outputs_[-1 - source];
    output = empty({sizes, rank}, described.dtype, device(), strides, described.row_elements);
    const DLDevice where = device() < 0 ? DLDevice{kDLCPU, 0} : DLDevice{kDLCUDA, device()};
    tensors_[at] = {data_of(output), where, described.rank, described.dtype, sizes, strides, 0};
    values_[at].tensor = &tensors_[at];
    used += rank;
  }
}

hstujit_status Launch::prepare(hstujit_call* call, hstujit_op** op, std::size_t* bytes) {
  if (const hstujit_status status = hstujit_call_op(call, values_.data(), count(), op)) return status;
  const hstujit_status known = hstujit_workspace_size(*op, values_.data(), count(), bytes);
  if (known == HSTUJIT_OK) return known;
  auto problem = HSTUJIT_INIT(hstujit_problem);
  problem.max_seq_len = plan_.max_rows < 0 ? 1 : arguments_.value(plan_.max_rows).integer;
  problem.device = device();
  problem.derivative_follows = derivative_follows() ? 1 : 0;
  if (device() >= 0 && is_capturing(device())) {
    if (known != HSTUJIT_NOT_PREPARED) return known;
    throw_failure(known, "max_seq_len is " + std::to_string(problem.max_seq_len) +
                             ", for which nothing was launched before this capture of a CUDA graph; call the operator "
                             "once with it first, since a kernel may have to be compiled");
  }
  if (const hstujit_status status = hstujit_prepare(*op, &problem)) return status;
  return hstujit_workspace_size(*op, values_.data(), count(), bytes);
}

hstujit_op* Launch::prepare(std::size_t* bytes) {
  hstujit_op* op = nullptr;
  hstujit_status status = prepare(plan_.call(), &op, bytes);
  if (status != HSTUJIT_OK && arguments_.determinism() == Determinism::kPreferred && is_not_deterministic()) {
    warn(without_determinism(arguments_.op().name) + ", with warn_only=True (" + hstujit_last_error() + ")");
    plan_.replace(arguments_.create_call(context(), false));
    status = prepare(plan_.call(), &op, bytes);
  }
  check_status(status);
  return op;
}

void Launch::run() {
  std::size_t bytes = 0;
  hstujit_op* const op = prepare(&bytes);
  OwnedTensor workspace;  // goes back to the allocator, which gives it to later work on the same stream alone
  if (bytes != 0) workspace = empty(static_cast<std::int64_t>(bytes), {kDLUInt, 8, 1}, device());
  check_status(hstujit_launch(op, values_.data(), count(), bytes != 0 ? data_of(workspace) : nullptr, bytes,
                              device() < 0 ? nullptr : current_stream(device())));
}

std::shared_ptr<Plan> plan_of(Registered& registered, const Arguments& arguments) {
  PlanTable& plans = registered.plans;
  thread_local std::vector<std::uint64_t> words;
  words.clear();
  arguments.append_key(words);
  if (auto found = plans.find(words)) return found;
  PlanTable::Key key = words;  // a callback of Python may call operators on this thread
  const std::uint64_t generation = plans.generation();
  const bool deterministic = arguments.determinism() != Determinism::kAny;
  auto made = std::make_shared<Plan>(registered.op, arguments.create_call(context(), deterministic));
  return plans.keep(std::move(key), std::move(made), generation);
}

}  // namespace

void launch(Registered& registered, StableIValue* stack) {
  Arguments arguments(registered.op, stack);
  arguments.describe();
  const std::shared_ptr<Plan> plan = plan_of(registered, arguments);
  std::optional<CurrentDevice> device;
  if (arguments.device() >= 0) device.emplace(arguments.device());
  Launch launch(arguments, *plan);
  launch.take_inputs();
  launch.allocate();
  launch.run();
  std::vector<OwnedTensor> made;
  for (const int output : plan->results) made.push_back(launch.take_output(output));
  if (registered.op.lists_outputs) {
    StableListHandle list = nullptr;
    HSTUJIT_CALL_TORCH(torch_new_list_reserve_size, made.size(), &list);
    for (OwnedTensor& tensor : made)
      functions().torch_list_push_back(list, reinterpret_cast<StableIValue>(tensor.release()));
    stack[0] = reinterpret_cast<StableIValue>(list);
    return;
  }
  // Nothing fails once the stack has an output.
  for (std::size_t i = 0; i < made.size(); ++i) stack[i] = reinterpret_cast<StableIValue>(made[i].release());
}

}  // namespace hstujit::torch
