#include "compiler/plan/launch_plan.h"

#include <algorithm>
#include <utility>

#include "compiler/support/integers.h"

namespace hstujit {

namespace {

struct Layout {
  uint32_t size;
  uint32_t alignment;
};

Layout layout_of(ParamSlot::Kind kind) {
  switch (kind) {
    case ParamSlot::Kind::kPointer:
    case ParamSlot::Kind::kStride:
    case ParamSlot::Kind::kSize:
    case ParamSlot::Kind::kLong:
    case ParamSlot::Kind::kWorkspace:
      return {8, 8};
    case ParamSlot::Kind::kFloat:
    case ParamSlot::Kind::kInt:
    case ParamSlot::Kind::kInverse:
      return {4, 4};
    case ParamSlot::Kind::kTensorMap:
      return {128, 64};
  }
  return {0, 1};
}

}  // namespace

std::string source_file(const LaunchPlan& plan) { return plan.kernel_name + ".cu"; }
std::string launcher_file(const LaunchPlan& plan) { return plan.kernel_name + "_main.cu"; }

GridFactor constant_factor(int64_t value) {
  GridFactor factor;
  factor.constant = value;
  return factor;
}

GridFactor scalar_factor(int argument, int64_t divisor) {
  GridFactor factor;
  factor.source = GridFactor::Source::kScalar;
  factor.argument = argument;
  factor.divisor = divisor;
  return factor;
}

GridFactor size_factor(int argument, int64_t divisor, int64_t bias) {
  GridFactor factor;
  factor.source = GridFactor::Source::kSize;
  factor.argument = argument;
  factor.divisor = divisor;
  factor.bias = bias;
  return factor;
}

ParamSlot argument_slot(const Signature& signature, std::string name, ParamSlot::Kind kind, std::string_view argument,
                        std::string type) {
  ParamSlot slot;
  slot.name = std::move(name);
  slot.kind = kind;
  slot.argument = find_argument(signature, argument);
  slot.type = std::move(type);
  return slot;
}

ParamSlot workspace_slot(std::string name, std::string type, size_t region) {
  ParamSlot slot;
  slot.name = std::move(name);
  slot.kind = ParamSlot::Kind::kWorkspace;
  slot.region = static_cast<int>(region);
  slot.type = std::move(type);
  return slot;
}

void add_workspace_region(std::string name, std::string type, WorkspaceRegion region, LaunchPlan& plan) {
  plan.slots.push_back(workspace_slot(std::move(name), std::move(type), plan.workspace.regions.size()));
  plan.workspace.regions.push_back(std::move(region));
}

std::vector<uint32_t> slot_offsets(const std::vector<ParamSlot>& slots) {
  std::vector<uint32_t> offsets;
  uint32_t end = 0, strictest = 1;
  for (const ParamSlot& slot : slots) {
    const Layout layout = layout_of(slot.kind);
    end = round_up(end, layout.alignment);
    offsets.push_back(end);
    end += layout.size;
    strictest = std::max(strictest, layout.alignment);
  }
  offsets.push_back(round_up(end, strictest));
  return offsets;
}

}  // namespace hstujit
