#include "runtime/launch/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "compiler/support/integers.h"
#include "runtime/driver/cluster.h"

namespace hstujit {

namespace {

using SlotKind = ParamSlot::Kind;
using Source = GridFactor::Source;

constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
// The coordinates of bulk copies are 32-bit and signed.
constexpr int64_t kMaxMapRows = std::numeric_limits<int32_t>::max();

template <typename T>
void store(std::byte* destination, T value) {
  std::memcpy(destination, &value, sizeof(value));
}

BlockShape block_shape(const LaunchPlan& plan) {
  return {static_cast<unsigned>(plan.threads), static_cast<unsigned>(plan.shared_memory)};
}

double number(const hstujit_value& value, bool is_integer) {
  return is_integer ? static_cast<double>(value.integer) : value.real;
}

// Saturates: a product that is too large stays too large.
int64_t product(const std::vector<GridFactor>& factors, const hstujit_value* values) {
  int64_t total = 1;
  for (const GridFactor& factor : factors) {
    int64_t size = factor.constant;
    if (factor.source != Source::kConstant) {
      const hstujit_value& value = values[factor.argument];
      size = (factor.source == Source::kScalar ? value.integer : value.tensor->shape[factor.dimension]) + factor.bias;
    }
    const int64_t count = ceil_div(size, factor.divisor);
    if (count <= 0) return 0;
    if (__builtin_mul_overflow(total, count, &total)) total = std::numeric_limits<int64_t>::max();
  }
  return total;
}

// Where each region of a workspace begins.
struct WorkspaceLayout {
  int64_t starts[WorkspacePlan::kMaxRegions] = {};
  int64_t cleared = 0;  // bytes, from the beginning on
  int64_t bytes = 0;
};

// Saturates as product() does.
WorkspaceLayout lay_out(const WorkspacePlan& plan, const hstujit_value* values) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max() / WorkspacePlan::kAlignment * WorkspacePlan::kAlignment;
  WorkspaceLayout layout;
  for (size_t i = 0; i < plan.regions.size(); ++i) {
    layout.starts[i] = layout.bytes < kMax ? round_up(layout.bytes, WorkspacePlan::kAlignment) : kMax;
    const int64_t size = product(plan.regions[i].bytes, values);
    if (__builtin_add_overflow(layout.starts[i], size, &layout.bytes)) layout.bytes = kMax;
    if (plan.regions[i].cleared) layout.cleared = layout.bytes;
  }
  return layout;
}

// An address of device memory that a map may have: of a multiple of 16 bytes, in the granule of an output. One of them
// has elements, or nothing would be launched.
void* some_address(const std::vector<int>& outputs, const hstujit_value* values) {
  for (const int output : outputs) {
    const DLTensor& tensor = *values[output].tensor;
    if (is_empty(tensor)) continue;
    constexpr uintptr_t kMapAlignment = 16;
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(tensor_data(tensor)) / kMapAlignment * kMapAlignment);
  }
  return nullptr;
}

int64_t blocks(const FollowingKernel& kernel, const hstujit_value* values) {
  const int64_t total = product(kernel.grid, values);
  return kernel.max_blocks > 0 ? std::min(total, kernel.max_blocks) : total;
}

}  // namespace

Result<LauncherPtr> Launcher::create(CudaDriverPtr driver, ModulePtr module, const Signature& signature,
                                     const LaunchPlan& plan, Counter launches) {
  HSTUJIT_ASSIGN_OR_RETURN(ArgumentChecker checker, ArgumentChecker::create(signature));
  const std::shared_ptr<Launcher> launcher(
      new Launcher(std::move(driver), std::move(module), plan, std::move(checker), std::move(launches)));
  HSTUJIT_RETURN_IF_ERROR(launcher->validate_plan(signature).with_context(plan.kernel_name));
  if (plan.cluster.max > 1) {
    launcher->clusters_ =
        resident_clusters(*launcher->driver_, launcher->module_->function(), block_shape(plan), plan.cluster.max);
  }
  return LauncherPtr(launcher);
}

size_t Launcher::count_maps(const LaunchPlan& plan) {
  const auto is_map = [](const ParamSlot& slot) { return slot.kind == SlotKind::kTensorMap; };
  return static_cast<size_t>(std::ranges::count_if(plan.slots, is_map));
}

Status Launcher::check_map_rows(const hstujit_value* values) const {
  for (const int argument : mapped_) {
    const int64_t rows = values[argument].tensor->shape[0];
    if (rows <= kMaxMapRows) continue;
    return Status(Code::kUnsupported,
                  fmt::format("{} has {} rows; {} copies it by 32-bit coordinates and takes at most {} rows, so the "
                              "batch must be split",
                              checker_.signature()[argument].name, rows, plan_.kernel_name, kMaxMapRows));
  }
  return {};
}

Status Launcher::check_divisors(const hstujit_value* values) const {
  for (const ParamSlot* slot : divisors_) {
    if (number(values[slot->argument], is_integer_[slot->argument]) > 0 ||
        number(values[slot->fallback], is_integer_[slot->fallback]) > 0) {
      continue;
    }
    const Signature& signature = checker_.signature();
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} is {}, and there are outputs to write; it must be 1 or more where {} is not positive",
                    signature[slot->fallback].name, number(values[slot->fallback], is_integer_[slot->fallback]),
                    signature[slot->argument].name));
  }
  return {};
}

int64_t Launcher::cluster_of(const hstujit_value* values, int64_t tiles) const {
  if (clusters_.empty()) return 1;
  const int64_t shares = values[plan_.cluster.argument].integer / plan_.cluster.min;
  int64_t cluster = std::min(static_cast<int64_t>(clusters_.size()) - 1, shares);
  while (cluster > 1 && clusters_[static_cast<size_t>(cluster)] < tiles) --cluster;
  return std::max<int64_t>(cluster, 1);
}

Status Launcher::explain_empty_grid(const hstujit_value* values) const {
  const GridFactor* scalar = nullptr;
  for (const GridFactor& factor : plan_.grid) {
    if (factor.source == Source::kConstant) continue;
    const hstujit_value& value = values[factor.argument];
    // Nothing to do: no sequence, say, though there are rows that belong to none.
    if (factor.source == Source::kSize && value.tensor->shape[factor.dimension] + factor.bias <= 0) return {};
    if (factor.source == Source::kScalar && value.integer + factor.bias <= 0) scalar = &factor;
  }
  // Without rows, outputs are sums over all of them, or empty.
  const auto is_written = [&](int output) {
    return !is_empty(*values[output].tensor) && std::ranges::find(sums_, output) == sums_.end();
  };
  if (scalar == nullptr || std::ranges::none_of(outputs_, is_written)) return {};
  return Status(Code::kInvalidArgument, fmt::format("{} is {}, and there are outputs to write; it must be {} or more",
                                                    checker_.signature()[scalar->argument].name,
                                                    values[scalar->argument].integer, 1 - scalar->bias));
}

Status Launcher::check_grids(const hstujit_value* values, int64_t grid) const {
  const std::string* kernel = &plan_.kernel_name;
  int64_t max = grid;
  for (const FollowingKernel& following : plan_.following) {
    const int64_t total = blocks(following, values);
    if (total > max) kernel = &following.kernel_name;
    max = std::max(max, total);
  }
  if (max <= kMaxBlocks) return {};
  return Status(Code::kInvalidArgument,
                fmt::format("these sizes need {} blocks of {}; at most {} can be launched", max, *kernel, kMaxBlocks));
}

TensorMapView Launcher::map_view(const ParamSlot& slot, const hstujit_value* values) const {
  const DLTensor& tensor = *values[slot.argument].tensor;
  TensorMapView view;
  view.dtype = dtypes_[slot.argument];
  // A map has elements at an address, which may be any where there are none: the kernel copies none.
  const bool empty = is_empty(tensor);
  view.data = empty ? some_address(outputs_, values) : tensor_data(tensor);
  int64_t dense = 1;
  for (size_t i = 0; i < slot.map.axes.size(); ++i) {
    const int dimension = slot.map.axes[i].dimension;
    view.sizes[i] = std::max<int64_t>(tensor.shape[dimension], 1);
    view.strides[i] = empty ? dense : tensor_stride(tensor, dimension);
    dense *= view.sizes[i];
  }
  return view;
}

cuda::Error Launcher::pack(const hstujit_value* values, void* const* regions, std::byte* parameters) const {
  KeptMaps::Use maps(maps_);
  size_t map_index = 0;
  for (size_t i = 0; i < plan_.slots.size(); ++i) {
    const ParamSlot& slot = plan_.slots[i];
    const hstujit_value& value = values[slot.argument];
    std::byte* const destination = parameters + offsets_[i];
    switch (slot.kind) {
      case SlotKind::kPointer:
        store<void*>(destination, tensor_data(*value.tensor));
        break;
      case SlotKind::kStride:
        store<int64_t>(destination, tensor_stride(*value.tensor, slot.dimension));
        break;
      case SlotKind::kSize:
        store<int64_t>(destination, value.tensor->shape[slot.dimension] + slot.bias);
        break;
      case SlotKind::kFloat:
        store<float>(destination, static_cast<float>(number(value, is_integer_[slot.argument])));
        break;
      case SlotKind::kInt:
        store<int32_t>(destination, static_cast<int32_t>(number(value, is_integer_[slot.argument])));
        break;
      case SlotKind::kLong:
        store<int64_t>(destination, value.integer);
        break;
      case SlotKind::kInverse: {
        const double given = number(value, is_integer_[slot.argument]);
        const double divisor = given > 0 ? given : number(values[slot.fallback], is_integer_[slot.fallback]);
        store<float>(destination, static_cast<float>(1.0 / divisor));
        break;
      }
      case SlotKind::kTensorMap: {
        auto* const map = reinterpret_cast<cuda::TensorMap*>(destination);
        const cuda::Error error = maps.encode(*driver_, map_index++, map_view(slot, values), slot.map, map);
        if (error != cuda::kSuccess) return error;
        break;
      }
      case SlotKind::kWorkspace:
        store<void*>(destination, regions[slot.region]);
        break;
    }
  }
  return cuda::kSuccess;
}

Result<size_t> Launcher::workspace_size(const hstujit_value* values, size_t count) const {
  if (plan_.workspace.regions.empty()) return size_t{0};
  const Placement placement{true, module_->device().ordinal};
  bool nothing_to_write = false;
  if (const ArgumentFailure failure = checker_.check(values, count, placement, &nothing_to_write); !failure.none()) {
    return checker_.explain(failure, values, placement);
  }
  if (nothing_to_write || product(plan_.grid, values) == 0) return size_t{0};
  return static_cast<size_t>(lay_out(plan_.workspace, values).bytes);
}

Status Launcher::launch(const hstujit_value* values, size_t count, cuda::Stream stream,
                        const Workspace& workspace) const {
  const Placement placement{true, module_->device().ordinal};
  bool nothing_to_write = false;
  if (const ArgumentFailure failure = checker_.check(values, count, placement, &nothing_to_write); !failure.none()) {
    return checker_.explain(failure, values, placement);
  }
  if (nothing_to_write) return {};
  HSTUJIT_RETURN_IF_ERROR(check_map_rows(values));
  int64_t grid = product(plan_.grid, values);
  if (grid == 0) {
    HSTUJIT_RETURN_IF_ERROR(explain_empty_grid(values));
    return clear_sums(values, stream);
  }
  HSTUJIT_RETURN_IF_ERROR(check_divisors(values));
  if (plan_.persistent_blocks > 0) grid = std::min(grid, plan_.persistent_blocks);
  const int64_t cluster = cluster_of(values, grid);
  grid *= cluster;
  HSTUJIT_RETURN_IF_ERROR(check_grids(values, grid));
  const WorkspaceLayout layout = lay_out(plan_.workspace, values);
  HSTUJIT_RETURN_IF_ERROR(check_workspace(workspace, layout.bytes, plan_.kernel_name));
  void* regions[WorkspacePlan::kMaxRegions] = {};
  for (size_t i = 0; i < plan_.workspace.regions.size(); ++i) {
    regions[i] = static_cast<std::byte*>(workspace.address) + layout.starts[i];
  }

  alignas(64) std::byte parameters[kMaxParameterBytes];
  if (const cuda::Error error = pack(values, regions, parameters); error != cuda::kSuccess) {
    return driver_->failure(error, "cuTensorMapEncodeTiled", __FILE__, __LINE__).with_context(plan_.kernel_name);
  }
  void* arguments[] = {parameters};
  if (layout.cleared > 0) {
    const auto address = static_cast<cuda::DevicePtr>(reinterpret_cast<uintptr_t>(workspace.address));
    const cuda::Error error = driver_->set_bytes(address, 0, static_cast<size_t>(layout.cleared), stream);
    if (error != cuda::kSuccess) {
      return driver_->failure(error, "cuMemsetD8Async", __FILE__, __LINE__).with_context(plan_.kernel_name);
    }
  }
  Status enqueued = enqueue_main(grid, cluster, stream, arguments);
  if (enqueued.ok()) enqueued = enqueue_following(values, stream, arguments);
  module_->mark_launch(stream);
  if (launches_ && enqueued.ok()) launches_->fetch_add(1, std::memory_order_relaxed);
  return enqueued;
}

Status Launcher::clear_sums(const hstujit_value* values, cuda::Stream stream) const {
  for (const int sum : sums_) {
    const DLTensor& tensor = *values[sum].tensor;
    if (is_empty(tensor)) continue;
    const auto address_of = [](const DLTensor& of) {
      return static_cast<cuda::DevicePtr>(reinterpret_cast<uintptr_t>(tensor_data(of)));
    };
    const auto bytes = static_cast<size_t>(span_bytes(tensor));
    const cuda::DevicePtr address = address_of(tensor);
    // Without rows an output is the tensor that it would be added to.
    const std::string& added_to = checker_.signature()[sum].in_place;
    const bool copies = !added_to.empty();
    const cuda::DevicePtr from =
        copies ? address_of(*values[find_argument(checker_.signature(), added_to)].tensor) : cuda::DevicePtr{0};
    if (copies && from == address) continue;
    const cuda::Error error =
        copies ? driver_->copy_on_device(address, from, bytes, stream) : driver_->set_bytes(address, 0, bytes, stream);
    if (error != cuda::kSuccess) {
      return driver_->failure(error, copies ? "cuMemcpyDtoDAsync" : "cuMemsetD8Async", __FILE__, __LINE__)
          .with_context(plan_.kernel_name);
    }
  }
  return {};
}

Status Launcher::enqueue_main(int64_t grid, int64_t cluster, cuda::Stream stream, void** arguments) const {
  const BlockShape block = block_shape(plan_);
  const cuda::Error error =
      cluster > 1 ? launch_clusters(*driver_, module_->function(), block, grid, cluster, stream, arguments)
                  : driver_->launch_kernel(module_->function(), static_cast<unsigned>(grid), 1, 1, block.threads, 1, 1,
                                           block.shared_memory, stream, arguments, nullptr);
  if (error == cuda::kSuccess) return {};
  return driver_->failure(error, cluster > 1 ? "cuLaunchKernelEx" : "cuLaunchKernel", __FILE__, __LINE__)
      .with_context(plan_.kernel_name);
}

Status Launcher::enqueue_following(const hstujit_value* values, cuda::Stream stream, void** arguments) const {
  for (size_t i = 0; i < plan_.following.size(); ++i) {
    const FollowingKernel& kernel = plan_.following[i];
    const auto grid = static_cast<unsigned>(blocks(kernel, values));
    if (grid == 0) continue;
    const cuda::Error error =
        driver_->launch_kernel(module_->following(i), grid, 1, 1, static_cast<unsigned>(kernel.threads), 1, 1,
                               static_cast<unsigned>(kernel.shared_memory), stream, arguments, nullptr);
    if (error != cuda::kSuccess) {
      return driver_->failure(error, "cuLaunchKernel", __FILE__, __LINE__).with_context(kernel.kernel_name);
    }
  }
  return {};
}

}  // namespace hstujit
