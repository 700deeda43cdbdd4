// complete_cumsum: what it takes, its reference, and what is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler/spec/config.h"

namespace hstujit {
namespace {

OpSpecPtr cumsum(const char* dtype) { return *parse_op_spec({{"op", "complete_cumsum"}, {"dtype", dtype}}, ""); }

std::vector<int64_t> offsets_of(const char* dtype, const std::vector<int64_t>& lengths) {
  const auto count = static_cast<int64_t>(lengths.size());
  std::vector<HostValue> values(2);
  values[0].tensor = {{count}, {}, lengths};
  cumsum(dtype)->reference(Direction::kForward, {{count}, {}, count, {}}, values);
  EXPECT_EQ(values[1].tensor.shape, (std::vector<int64_t>{count + 1}));
  return values[1].tensor.integers;
}

TEST(CompleteCumsum, Signature) {
  const OpSpecPtr spec = cumsum("int32");
  const Signature signature = spec->signature(Direction::kForward);
  ASSERT_EQ(signature.size(), 2u);
  EXPECT_EQ(shape_text(signature[0]), "(L)");
  EXPECT_EQ(shape_text(signature[1]), "(L+1)");
  EXPECT_EQ(signature[1].role, ArgumentRole::kOutput);
  EXPECT_EQ(signature[1].dtype, DataType::kInt32);
  EXPECT_FALSE(spec->supports(Direction::kBackward));
  EXPECT_EQ(key_text(*cumsum("int64")), R"({"op":"complete_cumsum"})");
  EXPECT_EQ(spec->work(Direction::kForward, {{3}, {}, 3, {}}).bytes, 7 * 4);
}

TEST(CompleteCumsum, OffsetsAreSumsOfWhatComesBefore) {
  for (const char* dtype : {"int32", "int64"}) {
    EXPECT_EQ(offsets_of(dtype, {}), (std::vector<int64_t>{0}));
    EXPECT_EQ(offsets_of(dtype, {7}), (std::vector<int64_t>{0, 7}));
    EXPECT_EQ(offsets_of(dtype, {3, 0, 5, 1}), (std::vector<int64_t>{0, 3, 3, 8, 9}));
  }
}

TEST(CompleteCumsum, SumsWrap) {
  constexpr int64_t kNarrow = std::numeric_limits<int32_t>::max(), kWide = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(offsets_of("int32", {kNarrow, 1, 1}), (std::vector<int64_t>{0, kNarrow, -kNarrow - 1, -kNarrow}));
  EXPECT_EQ(offsets_of("int64", {kNarrow, 1, 1}), (std::vector<int64_t>{0, kNarrow, kNarrow + 1, kNarrow + 2}));
  EXPECT_EQ(offsets_of("int64", {kWide, 1, 1}), (std::vector<int64_t>{0, kWide, -kWide - 1, -kWide}));
}

// Generated lengths are as many as the config says rows; some thousands overflow an int32.
TEST(CompleteCumsum, GeneratedLengths) {
  const auto instance = parse_instance(
      {{"name", "offsets"}, {"op", "complete_cumsum"}, {"dtype", "int32"}, {"rows", 5000}}, "ops[0]", ".");
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  const Lengths lengths = make_lengths(*instance, 5000);
  std::vector<HostValue> values = instance->spec->make_inputs(Direction::kForward, lengths, 1);
  EXPECT_EQ(values[0].tensor.shape, (std::vector<int64_t>{5000}));
  instance->spec->reference(Direction::kForward, lengths, values);
  const std::vector<int64_t>& offsets = values[1].tensor.integers;
  EXPECT_FALSE(std::is_sorted(offsets.begin(), offsets.end()));
}

TEST(CompleteCumsum, SaysWhatIsWrong) {
  const auto error = [](const Json& json) { return parse_op_spec(json, "ops[0]").status().message(); };
  EXPECT_EQ(error({{"op", "complete_cumsum"}, {"dtype", "bf16"}}),
            "ops[0].dtype is \"bf16\"; allowed: int32, int64 (type of lengths and offsets)");
  EXPECT_EQ(parse_instance({{"name", "offsets"}, {"op", "complete_cumsum"}}, "ops[0]", ".").status().message(),
            "ops[0].rows is missing; allowed: an integer from 0 to 268435456 (rows of the whole problem)");
}

}  // namespace
}  // namespace hstujit
