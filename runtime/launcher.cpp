#include "runtime/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/driver/cluster.h"
#include "runtime/driver/tensor_map.h"

namespace hstujit {

namespace {

using Kind = ParamSlot::Kind;
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

}  // namespace

Result<LauncherPtr> Launcher::create(CudaDriverPtr driver, ModulePtr module, const Signature& signature,
                                     const LaunchPlan& plan) {
  HSTUJIT_ASSIGN_OR_RETURN(ArgumentChecker checker, ArgumentChecker::create(signature));
  const std::shared_ptr<Launcher> launcher(
      new Launcher(std::move(driver), std::move(module), plan, std::move(checker)));
  HSTUJIT_RETURN_IF_ERROR(launcher->validate_plan(signature).with_context(plan.kernel_name));
  return LauncherPtr(launcher);
}

Status Launcher::validate_plan(const Signature& signature) {
  for (const Argument& argument : signature) {
    if (argument.role == ArgumentRole::kOutput) output_ = static_cast<int>(is_integer_.size());
    is_integer_.push_back(argument.kind == ArgumentKind::kInt);
    dtypes_.push_back(argument.dtype);
  }
  const auto known = [&](int index) { return index >= 0 && index < static_cast<int>(signature.size()); };
  for (const ParamSlot& slot : plan_.slots) {
    const bool scalar = slot.kind == Kind::kFloat || slot.kind == Kind::kInt || slot.kind == Kind::kInverse;
    if (!known(slot.argument) || (slot.kind == Kind::kInverse && !known(slot.fallback))) {
      return Status(Code::kInternal, fmt::format("parameter {} refers to no argument", slot.name));
    }
    const Argument& argument = signature[slot.argument];
    const int rank = static_cast<int>(argument.shape.size());
    if (scalar == (argument.kind == ArgumentKind::kTensor) ||
        ((slot.kind == Kind::kStride || slot.kind == Kind::kSize) && (slot.dimension < 0 || slot.dimension >= rank))) {
      return Status(Code::kInternal, fmt::format("parameter {} does not fit argument {}", slot.name, argument.name));
    }
    if (slot.kind == Kind::kInt && is_integer_[slot.argument]) checker_.require_int32(slot.argument);
    if (slot.kind == Kind::kInverse) divisors_.push_back(&slot);
    if (slot.kind != Kind::kTensorMap) continue;
    if (rank != 3 || size_of(argument.dtype) != 2 || slot.map.box_columns < 1 || slot.map.box_columns > 64 ||
        slot.map.box_rows < 1 || slot.map.box_rows > 256) {
      return Status(Code::kInternal,
                    fmt::format("parameter {}: a tensor map needs a rank-3 tensor of 16-bit elements and a "
                                "box of at most 64 columns and 256 rows",
                                slot.name));
    }
    if (driver_->tensor_map_encode_tiled == nullptr) {
      return Status(
          Code::kUnsupported,
          fmt::format("the CUDA driver, version {}, has no cuTensorMapEncodeTiled: a driver for CUDA 12 or newer "
                      "is needed",
                      driver_->version()));
    }
    mapped_.push_back(slot.argument);
  }
  for (const GridFactor& factor : plan_.grid) {
    if (factor.source == Source::kConstant) continue;
    const bool scalar = factor.source == Source::kScalar;
    if (factor.divisor < 1 || !known(factor.argument) ||
        (signature[factor.argument].kind == ArgumentKind::kTensor) == scalar) {
      return Status(Code::kInternal, "a grid factor refers to no such argument");
    }
    if (scalar) checker_.require_not_negative(factor.argument);
  }
  if (plan_.cluster.most > 1) {
    if (!known(plan_.cluster.argument) || !is_integer_[plan_.cluster.argument] || plan_.cluster.least < 1) {
      return Status(Code::kInternal, "the cluster's size refers to no integer argument");
    }
    clusters_ = resident_clusters(*driver_, module_->function(), block_shape(plan_), plan_.cluster.most);
  }
  offsets_ = slot_offsets(plan_.slots);
  if (offsets_.back() > kMaxParameterBytes) {
    return Status(Code::kInternal,
                  fmt::format("{} bytes of parameters; at most {} are allowed", offsets_.back(), kMaxParameterBytes));
  }
  return {};
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

int64_t Launcher::blocks(const hstujit_value* values) const {
  int64_t total = 1;
  for (const GridFactor& factor : plan_.grid) {
    int64_t size = factor.constant;
    if (factor.source != Source::kConstant) {
      const hstujit_value& value = values[factor.argument];
      size = (factor.source == Source::kScalar ? value.integer : value.tensor->shape[factor.dimension]) + factor.bias;
    }
    const int64_t count = size / factor.divisor + (size % factor.divisor > 0 ? 1 : 0);
    if (count <= 0) return 0;
    // Saturates: a product that is too large stays too large.
    if (__builtin_mul_overflow(total, count, &total)) total = std::numeric_limits<int64_t>::max();
  }
  return total;
}

int64_t Launcher::cluster_of(const hstujit_value* values, int64_t tiles) const {
  if (clusters_.empty()) return 1;
  const int64_t shares = values[plan_.cluster.argument].integer / plan_.cluster.least;
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
  if (scalar == nullptr) return {};
  return Status(Code::kInvalidArgument, fmt::format("{} is {}, and there are outputs to write; it must be {} or more",
                                                    checker_.signature()[scalar->argument].name,
                                                    values[scalar->argument].integer, 1 - scalar->bias));
}

cuda::Error Launcher::pack(const hstujit_value* values, std::byte* parameters) const {
  for (size_t i = 0; i < plan_.slots.size(); ++i) {
    const ParamSlot& slot = plan_.slots[i];
    const hstujit_value& value = values[slot.argument];
    std::byte* const destination = parameters + offsets_[i];
    switch (slot.kind) {
      case Kind::kPointer:
        store<void*>(destination, tensor_data(*value.tensor));
        break;
      case Kind::kStride:
        store<int64_t>(destination, tensor_stride(*value.tensor, slot.dimension));
        break;
      case Kind::kSize:
        store<int64_t>(destination, value.tensor->shape[slot.dimension] + slot.bias);
        break;
      case Kind::kFloat:
        store<float>(destination, static_cast<float>(number(value, is_integer_[slot.argument])));
        break;
      case Kind::kInt:
        store<int32_t>(destination, static_cast<int32_t>(number(value, is_integer_[slot.argument])));
        break;
      case Kind::kInverse: {
        const double given = number(value, is_integer_[slot.argument]);
        const double divisor = given > 0 ? given : number(values[slot.fallback], is_integer_[slot.fallback]);
        store<float>(destination, static_cast<float>(1.0 / divisor));
        break;
      }
      case Kind::kTensorMap: {
        const DLTensor& tensor = *value.tensor;
        TensorMapView view{dtypes_[slot.argument], tensor_data(tensor),      tensor.shape[0],         tensor.shape[1],
                           tensor.shape[2],        tensor_stride(tensor, 0), tensor_stride(tensor, 1)};
        if (view.rows == 0) {
          // A map has a row at an address, which may be any: the kernel copies none. There are outputs, or it would not
          // run.
          view.rows = 1;
          view.head_stride = view.columns;
          view.data = tensor_data(*values[output_].tensor);
        }
        auto* const map = reinterpret_cast<cuda::TensorMap*>(destination);
        if (const cuda::Error error = encode_tensor_map(*driver_, view, slot.map, map); error != cuda::kSuccess) {
          return error;
        }
        break;
      }
    }
  }
  return cuda::kSuccess;
}

Status Launcher::launch(const hstujit_value* values, size_t count, cuda::Stream stream) const {
  const Placement placement{true, module_->device().ordinal};
  bool nothing_to_write = false;
  if (const ArgumentFailure failure = checker_.check(values, count, placement, &nothing_to_write); !failure.none()) {
    return checker_.explain(failure, values, placement);
  }
  if (nothing_to_write) return {};
  HSTUJIT_RETURN_IF_ERROR(check_map_rows(values));
  int64_t grid = blocks(values);
  if (grid == 0) return explain_empty_grid(values);
  HSTUJIT_RETURN_IF_ERROR(check_divisors(values));
  if (plan_.persistent_blocks > 0) grid = std::min(grid, plan_.persistent_blocks);
  const int64_t cluster = cluster_of(values, grid);
  grid *= cluster;
  if (grid > kMaxBlocks) {
    return Status(Code::kInvalidArgument, fmt::format("these sizes need {} blocks of {}; at most {} can be launched",
                                                      grid, plan_.kernel_name, kMaxBlocks));
  }

  alignas(64) std::byte parameters[kMaxParameterBytes];
  if (const cuda::Error error = pack(values, parameters); error != cuda::kSuccess) {
    return driver_->failure(error, "cuTensorMapEncodeTiled", __FILE__, __LINE__).with_context(plan_.kernel_name);
  }
  void* arguments[] = {parameters};
  const BlockShape block = block_shape(plan_);
  const cuda::Error error =
      cluster > 1 ? launch_clusters(*driver_, module_->function(), block, grid, cluster, stream, arguments)
                  : driver_->launch_kernel(module_->function(), static_cast<unsigned>(grid), 1, 1, block.threads, 1, 1,
                                           block.shared_memory, stream, arguments, nullptr);
  if (error == cuda::kSuccess) return {};
  return driver_->failure(error, cluster > 1 ? "cuLaunchKernelEx" : "cuLaunchKernel", __FILE__, __LINE__)
      .with_context(plan_.kernel_name);
}

}  // namespace hstujit
