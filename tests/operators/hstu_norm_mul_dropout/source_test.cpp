// Features that an instance does not use leave nothing in its source.
#include "compiler/emit/source.h"

#include <gtest/gtest.h>

#include "compiler/emit/identifier.h"
#include "compiler/plan/search_space.h"
#include "tests/row/row_cases.h"

namespace hstujit {
namespace {

TEST(HstuNormMulDropoutSource, HasOnlyWhatIsUsed) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const RowCase& row : row_cases({{"width", 64}})) {
    const bool dropout = row.json.value("dropout", false), groups = row.json.value("group_norm", false);
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      const KernelConfig config = heuristic_config(*row.spec, direction, device, {}).value();
      const auto kernel = emit_kernel(*row.spec, direction, config, device);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      const auto names = [&](const char* name) { return names_identifier(kernel->source, name); };
      SCOPED_TRACE(row.name + " " + std::string(to_string(direction)));
      EXPECT_EQ(names("philox4x32"), dropout);
      EXPECT_EQ(names("seed"), dropout);
      const bool in_tensor = row.json.value("seed_tensor", false);
      EXPECT_EQ(
          kernel->source.find("draw_uniform<128, 0>(__ldg(params.seed_tensor), params.offset,") != std::string::npos,
          in_tensor);
      EXPECT_EQ(names("params.seed"), dropout && !in_tensor);
      EXPECT_EQ(names("params.row_numbers"), row.json.value("row_numbers", false));
      EXPECT_EQ(names("GroupLayout"), groups);
      EXPECT_EQ(names("add_group_sums"), groups && direction == Direction::kBackward);
    }
  }
}

}  // namespace
}  // namespace hstujit
