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
#include "python/native/failure.h"

namespace hstujit::torch {
namespace {

void* current_stream(std::int32_t device) {
  void* stream = nullptr;
  check(functions().aoti_torch_get_current_cuda_stream(device, &stream), "aoti_torch_get_current_cuda_stream");
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
    check(functions().aoti_torch_get_current_device_index(&current), "aoti_torch_get_current_device_index");
    if (current == device && has_launched) return;
    check(functions().aoti_torch_create_device_guard(device, &guard_), "aoti_torch_create_device_guard");
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
std::int64_t last_of(const Arguments& arguments, int input) {
  const Functions& torch = functions();
  const Tensor& offsets = arguments.tensor(input);
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
    if (callbacks().allocate) check_callback(callbacks().allocate(rank, sizes.data(), dtype, device) != 0);
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

// Whether kernels read a tensor where it is: its innermost stride is 1, and its address and all other strides are
// multiples of the argument's alignment.
bool is_read_in_place(const Tensor& tensor, const LaunchArgument& argument) {
  const std::int64_t alignment = argument.alignment, element = argument.type.bits / 8;
  bool is_empty = false, is_read = reinterpret_cast<std::uintptr_t>(tensor.data) % argument.alignment == 0;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    is_empty = is_empty || tensor.sizes[axis] == 0;
    if (tensor.sizes[axis] == 1) continue;
    const std::int64_t stride = tensor.strides[axis];
    is_read = is_read && (axis + 1 == tensor.rank ? stride == 1 : stride * element % alignment == 0);
  }
  return is_read || is_empty;
}

// Everything of one call that lies on the stack of its thread.
class Launch {
 public:
  Launch(const Arguments& arguments, Plan& plan) : arguments_(arguments), plan_(plan) {}

  void describe_inputs();
  void allocate();
  void run();
  OwnedTensor take_output(int output) {
    return output < 0 ? empty(0, plan_.arguments[first_output()].dtype, device()) : std::move(outputs_[output]);
  }

 private:
  std::int32_t device() const { return arguments_.device(); }
  std::size_t count() const { return plan_.arguments.size(); }
  void check_status(hstujit_status status) const { torch::check_status(arguments_.op().name, status); }
  std::size_t first_output() const;
  // Replaces a tensor that kernels do not read in place.
  struct Copy {
    OwnedTensor tensor;
    std::vector<std::int64_t> strides;
  };

  void describe_copy(std::size_t at, const Tensor& input);
  void describe(std::size_t at, void* data, std::int64_t* sizes, std::int64_t* strides, std::int32_t device);
  // The op of the call, ready to be launched.
  hstujit_op* prepare();
  hstujit_status prepare(hstujit_call* call, hstujit_op** op);

  const Arguments& arguments_;
  Plan& plan_;
  std::vector<Copy> copies_;
  std::array<OwnedTensor, kMaxOutputs> outputs_;
  std::array<std::int64_t, kMaxOutputs * kMaxRank> sizes_, strides_;  // of outputs, one behind the other
  std::array<hstujit_value, kMaxArguments> values_;
  std::array<DLTensor, kMaxArguments> tensors_;
};

std::size_t Launch::first_output() const {
  std::size_t at = 0;
  while (plan_.arguments[at].source >= 0) ++at;
  return at;
}

void Launch::describe(std::size_t at, void* data, std::int64_t* sizes, std::int64_t* strides, std::int32_t device) {
  const LaunchArgument& argument = plan_.arguments[at];
  const DLDevice where = device < 0 ? DLDevice{kDLCPU, 0} : DLDevice{kDLCUDA, device};
  tensors_[at] = {data, where, argument.rank, argument.type, sizes, strides, 0};
  values_[at].tensor = &tensors_[at];
}

void Launch::describe_copy(std::size_t at, const Tensor& input) {
  Copy& copy = copies_.emplace_back();
  copy.strides.resize(static_cast<std::size_t>(input.rank));
  copy.tensor = empty({input.sizes, copy.strides.size()}, input.dtype, input.device, copy.strides.data(), 1);
  check(functions().aoti_torch_copy_(copy.tensor.get(), arguments_.handle(plan_.arguments[at].source), 0),
        "aoti_torch_copy_");
  describe(at, data_of(copy.tensor), const_cast<std::int64_t*>(input.sizes), copy.strides.data(), input.device);
}

void Launch::describe_inputs() {
  for (std::size_t at = 0; at < count(); ++at) {
    const LaunchArgument& argument = plan_.arguments[at];
    if (argument.source < 0) continue;
    if (argument.kind == HSTUJIT_FLOAT) {
      values_[at].real = arguments_.input(argument.source).real;
    } else if (argument.kind == HSTUJIT_INT) {
      values_[at].integer = arguments_.input(argument.source).integer;
    } else {
      const Tensor& input = arguments_.tensor(argument.source);  // an input is read only
      if (is_read_in_place(input, argument))
        describe(at, const_cast<void*>(input.data), const_cast<std::int64_t*>(input.sizes),
                 const_cast<std::int64_t*>(input.strides), input.device);
      else
        describe_copy(at, input);
    }
  }
}

void Launch::allocate() {
  std::array<std::int64_t, kMaxArguments> rows;
  for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
    const RowSource& source = plan_.rows[i];
    rows[i] = source.rows >= 0 ? arguments_.given_rows(source.rows) : last_of(arguments_, source.offsets);
  }
  check_status(hstujit_call_output_sizes(plan_.call(), values_.data(), count(), rows.data(), plan_.rows.size(),
                                         sizes_.data(), sizes_.size()));
  std::size_t used = 0;
  for (std::size_t at = 0; at < count(); ++at) {
    const LaunchArgument& argument = plan_.arguments[at];
    if (argument.source >= 0) continue;
    const auto rank = static_cast<std::size_t>(argument.rank);
    OwnedTensor& output = outputs_[-1 - argument.source];
    output =
        empty({sizes_.data() + used, rank}, argument.dtype, device(), strides_.data() + used, argument.row_elements);
    describe(at, data_of(output), sizes_.data() + used, strides_.data() + used, device());
    used += rank;
  }
}

hstujit_status Launch::prepare(hstujit_call* call, hstujit_op** op) {
  if (const hstujit_status status = hstujit_call_op(call, values_.data(), count(), op); status != HSTUJIT_OK)
    return status;
  auto problem = HSTUJIT_INIT(hstujit_problem);
  problem.max_seq_len = plan_.max_rows < 0 ? 1 : arguments_.input(plan_.max_rows).integer;
  problem.device = device();
  PreparedOp& prepared = plan_.prepared(*op);
  if (prepared.is_prepared(problem.max_seq_len, device())) return HSTUJIT_OK;
  if (device() >= 0 && is_capturing(device())) {
    throw_failure(HSTUJIT_NOT_PREPARED,
                  "max_seq_len is " + std::to_string(problem.max_seq_len) +
                      ", for which nothing was launched before this capture of a CUDA graph; call the operator once "
                      "with it first, since a kernel may have to be compiled");
  }
  const hstujit_status status = hstujit_prepare(*op, &problem);
  if (status == HSTUJIT_OK) prepared.add(problem.max_seq_len, device());
  return status;
}

hstujit_op* Launch::prepare() {
  hstujit_op* op = nullptr;
  hstujit_status status = prepare(plan_.call(), &op);
  if (status != HSTUJIT_OK && arguments_.determinism() == Determinism::kPreferred && is_not_deterministic()) {
    warn(("hstujit::" + arguments_.op().name +
          " does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)', with "
          "warn_only=True (" +
          hstujit_last_error() + ")")
             .c_str());
    plan_.replace(arguments_.create_call(context(), false));
    status = prepare(plan_.call(), &op);
  }
  check_status(status);
  return op;
}

void Launch::run() {
  hstujit_op* const op = prepare();
  if (device() < 0) {
    check_status(hstujit_launch(op, values_.data(), count(), nullptr, 0, nullptr));
    return;
  }
  std::size_t bytes = 0;
  check_status(hstujit_workspace_size(op, values_.data(), count(), &bytes));
  void* const stream = current_stream(device());
  OwnedTensor workspace;  // goes back to the allocator, which gives it to later work on the same stream alone
  if (bytes != 0) workspace = empty(static_cast<std::int64_t>(bytes), functions().aoti_torch_dtype_uint8(), device());
  check_status(hstujit_launch(op, values_.data(), count(), bytes != 0 ? data_of(workspace) : nullptr, bytes, stream));
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
  std::unique_ptr<hstujit_call, void (*)(hstujit_call*)> call(arguments.create_call(context(), deterministic),
                                                              hstujit_call_destroy);
  auto made = std::make_shared<Plan>(registered.op, call.get());
  static_cast<void>(call.release());
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
  launch.describe_inputs();
  launch.allocate();
  launch.run();
  std::vector<int> outputs = plan->schema_outputs;
  outputs.insert(outputs.end(), plan->gradients.begin(), plan->gradients.end());
  std::vector<OwnedTensor> made;
  for (const int output : outputs) made.push_back(launch.take_output(output));
  if (registered.op.lists_outputs) {
    const Functions& torch = functions();
    StableListHandle list = nullptr;
    check(torch.torch_new_list_reserve_size(made.size(), &list), "torch_new_list_reserve_size");
    for (OwnedTensor& tensor : made) torch.torch_list_push_back(list, reinterpret_cast<StableIValue>(tensor.release()));
    stack[0] = reinterpret_cast<StableIValue>(list);
    return;
  }
  // Nothing fails once the stack has an output.
  for (std::size_t i = 0; i < made.size(); ++i) stack[i] = reinterpret_cast<StableIValue>(made[i].release());
}

}  // namespace hstujit::torch
