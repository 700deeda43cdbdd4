// bias_add: what it takes, and its reference against values worked out by hand from docs/ops-rows.md.
#include <gmock/gmock.h>

#include "compiler/spec/operators/bias_add/spec.h"
#include "tests/row/row_values.h"

namespace hstujit {
namespace {

using testing::ElementsAre;

BiasAddSpec bias_add(int64_t width) {
  BiasAddParams params;
  params.width = width;
  return BiasAddSpec(params);
}

std::vector<std::string> names_of(const OpSpec& spec, Direction direction) {
  std::vector<std::string> names;
  for (const Argument& argument : spec.signature(direction)) names.push_back(argument.name);
  return names;
}

TEST(BiasAdd, BackwardGivesTheGradientOfTheBiasAlone) {
  const BiasAddSpec spec = bias_add(4);
  EXPECT_THAT(names_of(spec, Direction::kForward), ElementsAre("x", "bias", "beta", "out"));
  EXPECT_THAT(names_of(spec, Direction::kBackward), ElementsAre("dout", "beta", "dbias"));
}

TEST(BiasAdd, ByHand) {
  const BiasAddSpec spec = bias_add(2);
  const auto forward =
      reference_of(spec, Direction::kForward, 2, {{"x", {1, 2, 3, 4}}, {"bias", {10, 20}}, {"beta", {2}}});
  EXPECT_THAT(forward.back().tensor.reals, ElementsAre(21, 42, 23, 44));
  const auto backward = reference_of(spec, Direction::kBackward, 2, {{"dout", {1, 2, 3, 4}}, {"beta", {2}}});
  EXPECT_THAT(backward.back().tensor.reals, ElementsAre(8, 12));
}

}  // namespace
}  // namespace hstujit
