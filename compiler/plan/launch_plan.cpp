#include "compiler/plan/launch_plan.h"

#include <algorithm>

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
