// An operator of the row family that is not part of this build: the one that docs/adding-an-operator.md shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/search_space.h"
#include "compiler/spec/operator_table.h"
#include "tests/host/host_call.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/row/row_cases.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackward};

TEST(ExampleOperator, IsReadFromAConfig) {
  const auto spec = parse_op_spec({{"op", "bias_silu"}, {"width", 100}}, "ops[0]");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(key_text(**spec), R"({"op":"bias_silu","width":100,"alignment":8})");
  const auto wrong = parse_op_spec({{"op", "bias_silu"}, {"width", 100}, {"bais", true}}, "ops[0]");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.status().message(), HasSubstr("bais"));
}

TEST(ExampleOperator, IsInTheSchema) {
  for (const OperatorEntry& entry : operator_table()) {
    if (entry.name == "bias_silu") {
      EXPECT_TRUE(entry.schema().dump().find("width") != std::string::npos);
      return;
    }
  }
  FAIL() << "no bias_silu in the table of operators";
}

TEST(ExampleOperator, AgreesWithItsReferenceOnTheHost) {
  for (const RowCase& row : row_cases({{"width", 72}})) {
    for (const Direction direction : kDirections) {
      SCOPED_TRACE(row.name + " " + std::string(to_string(direction)));
      const HostHandle handle(*row.spec, 2, direction);
      ASSERT_NE(handle.get(), nullptr) << handle.error();
      HostCall call(row.spec, {{41}, {}, 41, {}}, 7, /*row_padding=*/16, direction);
      ASSERT_EQ(call.launch(handle), 0) << call.error();
      EXPECT_EQ(call.mistakes(), "");
    }
  }
}

using ExampleKernels = CompiledKernels;

TEST_F(ExampleKernels, CompileForHopper) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const RowCase& row : row_cases({{"width", 512}})) {
    for (const Direction direction : kDirections)
      expect_fits(*row.spec, direction, heuristic_config(*row.spec, direction, device, {}).value(), device);
  }
}

}  // namespace
}  // namespace hstujit
