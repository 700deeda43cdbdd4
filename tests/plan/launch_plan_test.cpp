#include "compiler/plan/launch_plan.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace hstujit {
namespace {

using Kind = ParamSlot::Kind;

std::vector<uint32_t> offsets_of(const std::vector<Kind>& kinds) {
  std::vector<ParamSlot> slots(kinds.size());
  for (size_t index = 0; index < kinds.size(); ++index) slots[index].kind = kinds[index];
  return slot_offsets(slots);
}

TEST(LaunchPlan, OffsetsAgreeWithTheStructOfTheSameMembers) {
  struct alignas(64) TensorMap {
    unsigned char opaque[128];
  };
  struct Params {
    float scale;
    void* data;
    int count;
    TensorMap map;
    float alpha;
    float inverse;
    int64_t stride;
    int64_t size;
    int last;
    float* workspace;
  };
  EXPECT_EQ(offsets_of({Kind::kFloat, Kind::kPointer, Kind::kInt, Kind::kTensorMap, Kind::kFloat, Kind::kInverse,
                        Kind::kStride, Kind::kSize, Kind::kInt, Kind::kWorkspace}),
            (std::vector<uint32_t>{offsetof(Params, scale), offsetof(Params, data), offsetof(Params, count),
                                   offsetof(Params, map), offsetof(Params, alpha), offsetof(Params, inverse),
                                   offsetof(Params, stride), offsetof(Params, size), offsetof(Params, last),
                                   offsetof(Params, workspace), sizeof(Params)}));
}

TEST(LaunchPlan, TheStructIsPaddedToItsStrictestMember) {
  EXPECT_EQ(offsets_of({Kind::kPointer, Kind::kInt}), (std::vector<uint32_t>{0, 8, 16}));
  EXPECT_EQ(offsets_of({Kind::kFloat, Kind::kInt}), (std::vector<uint32_t>{0, 4, 8}));
  EXPECT_EQ(offsets_of({Kind::kFloat, Kind::kLong}), (std::vector<uint32_t>{0, 8, 16}));
  EXPECT_EQ(offsets_of({}), (std::vector<uint32_t>{0}));
}

}  // namespace
}  // namespace hstujit
