#include "compiler/spec/step_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/spec/op_spec.h"
#include "compiler/spec/program.h"
#include "compiler/support/json.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StepOperators, AreThoseOfEveryInstance) {
  EXPECT_THAT(step_operators("norm_attention"), ElementsAre("hstu_attention", "layer_norm", "rms_norm"));
  EXPECT_THAT(step_operators("stu_layer"),
              ElementsAre("addmm", "addmm_wgrad", "delta_hstu_attention", "hstu_attention", "hstu_norm_mul_dropout",
                          "layer_norm", "place_last_rows", "rms_norm", "silu", "take_last_rows"));
  EXPECT_THAT(step_operators("hstu_attention"), IsEmpty());
  EXPECT_THAT(step_operators("addmm"), ElementsAre("addmm_wgrad")) << "of its gradient";
}

TEST(StepOperators, AreOperatorsWithKernels) {
  for (const std::string_view op : operator_names()) {
    for (const std::string& step : step_operators(op)) {
      EXPECT_NE(step, op);
      EXPECT_EQ((*smallest_op_spec(step))->program(Direction::kForward), nullptr) << step << " of " << op;
    }
  }
}

// They change one parameter at a time: two of them together bring no other step. Under a sanitizer, which sees nothing
// in one pair that it does not see in another, a few of the pairs do.
TEST(StepOperators, FollowFromParametersOneByOne) {
  constexpr size_t kEvery = kSanitized ? 13 : 1;
  size_t pairs = 0;
  for (const std::string_view op : operator_names()) {
    std::vector<std::string> steps = step_operators(op);
    if (steps.empty()) continue;
    steps.emplace_back(op);
    const Json schema = operator_schema(op), smallest = (*smallest_op_spec(op))->to_json();
    const Json& properties = schema["properties"];
    const auto values = [&](const std::string& name) {
      const Json& property = properties[name];
      if (property.contains("enum")) return property["enum"].get<std::vector<Json>>();
      if (property.value("type", "") == "boolean") return std::vector<Json>{true, false};
      return std::vector<Json>();
    };
    for (const auto& [one, unused] : properties.items()) {
      for (const auto& [other, also_unused] : properties.items()) {
        for (const Json& first : values(one)) {
          for (const Json& second : one < other ? values(other) : std::vector<Json>()) {
            if (pairs++ % kEvery != 0) continue;
            Json json = smallest;
            json[one] = first;
            json[other] = second;
            const auto spec = parse_op_spec(json, "op");
            if (!spec.ok()) continue;
            for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
              const Program* const program = (*spec)->program(direction);
              if (program == nullptr) continue;
              for (const ProgramStep& step : program->steps)
                EXPECT_NE(std::find(steps.begin(), steps.end(), step.spec->op()), steps.end()) << json.dump();
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
