// Checks of Launcher::create: that a plan and a signature fit each other.
#include <fmt/format.h>

#include <bit>
#include <string_view>
#include <vector>

#include "runtime/launch/launcher.h"

namespace hstujit {

namespace {

using SlotKind = ParamSlot::Kind;
using Source = GridFactor::Source;

bool known(int index, const Signature& signature) { return index >= 0 && index < static_cast<int>(signature.size()); }

// The driver's rules for boxes without interleaving, and that a map leaves out no dimension.
Status validate_map(const ParamSlot& slot, const Argument& argument) {
  constexpr int kMaxBox = 256;
  const TensorMapPlan& map = slot.map;
  const auto refused = [&](std::string_view rule) {
    return Status(Code::kInternal, fmt::format("parameter {}: a tensor map {}", slot.name, rule));
  };
  const size_t rank = argument.shape.size();
  if (rank == 0 || rank > TensorMapPlan::kMaxRank || map.axes.size() != rank || !has_tensor_map_type(argument.dtype))
    return refused("has every dimension of a tensor of rank 1 to 5, of bf16, fp16 or fp32");
  std::vector<bool> seen(rank, false);
  for (const TensorMapPlan::Axis& axis : map.axes) {
    const auto dimension = static_cast<size_t>(axis.dimension);
    if (dimension >= rank || seen[dimension]) return refused("has every dimension of its tensor once");
    seen[dimension] = true;
    if (axis.box < 1 || axis.box > kMaxBox) return refused("has boxes of 1 to 256 elements along each dimension");
  }
  if (map.axes.front().dimension + 1 != static_cast<int>(rank)) return refused("begins with the innermost dimension");
  const auto line = static_cast<int>(size_of(argument.dtype)) * map.axes.front().box;
  const int swizzle = map.swizzle_bytes;
  if (line % 16 != 0 || (swizzle != 0 && (swizzle < 32 || swizzle > 128 || !std::has_single_bit(unsigned(swizzle)))) ||
      (swizzle != 0 && line > swizzle))
    return refused("has boxes whose innermost axis takes a multiple of 16 bytes, and no more than the swizzle's");
  return {};
}

}  // namespace

Status Launcher::validate_slot(const ParamSlot& slot, const Signature& signature) {
  if (slot.kind == SlotKind::kWorkspace) {
    if (slot.region >= 0 && static_cast<size_t>(slot.region) < plan_.workspace.regions.size()) return {};
    return Status(Code::kInternal, fmt::format("parameter {} is the address of region {} of a workspace of {} regions",
                                               slot.name, slot.region, plan_.workspace.regions.size()));
  }
  const bool scalar = slot.kind == SlotKind::kFloat || slot.kind == SlotKind::kInt || slot.kind == SlotKind::kLong ||
                      slot.kind == SlotKind::kInverse;
  if (!known(slot.argument, signature) || (slot.kind == SlotKind::kInverse && !known(slot.fallback, signature))) {
    return Status(Code::kInternal, fmt::format("parameter {} refers to no argument", slot.name));
  }
  const Argument& argument = signature[slot.argument];
  const int rank = static_cast<int>(argument.shape.size());
  if (scalar == (argument.kind == ArgumentKind::kTensor) ||
      (slot.kind == SlotKind::kLong && argument.kind != ArgumentKind::kInt) ||
      ((slot.kind == SlotKind::kStride || slot.kind == SlotKind::kSize) &&
       (slot.dimension < 0 || slot.dimension >= rank))) {
    return Status(Code::kInternal, fmt::format("parameter {} does not fit argument {}", slot.name, argument.name));
  }
  if (slot.kind == SlotKind::kInt && is_integer_[slot.argument]) checker_.require_int32(slot.argument);
  if (slot.kind == SlotKind::kInverse) divisors_.push_back(&slot);
  if (slot.kind != SlotKind::kTensorMap) return {};
  HSTUJIT_RETURN_IF_ERROR(validate_map(slot, argument));
  if (driver_->tensor_map_encode_tiled == nullptr) {
    return Status(Code::kUnsupported,
                  fmt::format("the CUDA driver, version {}, has no cuTensorMapEncodeTiled: a driver for CUDA 12 or "
                              "newer is needed",
                              driver_->version()));
  }
  mapped_.push_back(slot.argument);
  return {};
}

Status Launcher::validate_factors(const std::vector<GridFactor>& factors, const Signature& signature) {
  for (const GridFactor& factor : factors) {
    if (factor.source == Source::kConstant) continue;
    const bool scalar = factor.source == Source::kScalar;
    if (factor.divisor < 1 || !known(factor.argument, signature) ||
        (signature[factor.argument].kind == ArgumentKind::kTensor) == scalar) {
      return Status(Code::kInternal, "a grid factor refers to no such argument");
    }
    if (scalar) checker_.require_not_negative(factor.argument);
  }
  return {};
}

Status Launcher::validate_workspace(const Signature& signature) {
  const std::vector<WorkspaceRegion>& regions = plan_.workspace.regions;
  if (regions.size() > WorkspacePlan::kMaxRegions) {
    return Status(Code::kInternal, fmt::format("a workspace of {} regions; at most {} are allowed", regions.size(),
                                               WorkspacePlan::kMaxRegions));
  }
  for (size_t i = 0; i < regions.size(); ++i) {
    HSTUJIT_RETURN_IF_ERROR(validate_factors(regions[i].bytes, signature));
    if (i > 0 && regions[i].cleared && !regions[i - 1].cleared) {
      return Status(Code::kInternal, fmt::format("region {} of the workspace is cleared and the one before is not", i));
    }
  }
  return {};
}

Status Launcher::validate_plan(const Signature& signature) {
  for (const Argument& argument : signature) {
    if (argument.role == ArgumentRole::kOutput) {
      outputs_.push_back(static_cast<int>(is_integer_.size()));
      if (argument.accumulated) sums_.push_back(outputs_.back());
    }
    is_integer_.push_back(argument.kind == ArgumentKind::kInt);
    dtypes_.push_back(argument.dtype);
  }
  for (const ParamSlot& slot : plan_.slots) HSTUJIT_RETURN_IF_ERROR(validate_slot(slot, signature));
  HSTUJIT_RETURN_IF_ERROR(validate_factors(plan_.grid, signature));
  HSTUJIT_RETURN_IF_ERROR(validate_workspace(signature));
  for (const FollowingKernel& kernel : plan_.following) {
    HSTUJIT_RETURN_IF_ERROR(validate_factors(kernel.grid, signature).with_context(kernel.kernel_name));
  }
  if (plan_.cluster.max > 1) {
    if (!known(plan_.cluster.argument, signature) || !is_integer_[plan_.cluster.argument] || plan_.cluster.min < 1) {
      return Status(Code::kInternal, "the cluster's size refers to no integer argument");
    }
  }
  offsets_ = slot_offsets(plan_.slots);
  if (offsets_.back() > kMaxParameterBytes) {
    return Status(Code::kInternal,
                  fmt::format("{} bytes of parameters; at most {} are allowed", offsets_.back(), kMaxParameterBytes));
  }
  return {};
}

}  // namespace hstujit
