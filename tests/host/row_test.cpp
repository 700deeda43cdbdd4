// The row family on the host against the float64 reference, through the C boundary.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/host/host_call.h"
#include "tests/row/row_cases.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;

void check(const Json& json, int64_t rows) {
  const OpSpecPtr spec = make_spec(json);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    SCOPED_TRACE(fmt::format("{} {} rows {}", json.dump(), to_string(direction), rows));
    const HostHandle handle(*spec, 3, direction);
    ASSERT_NE(handle.get(), nullptr) << handle.error();
    HostCall call(spec, {{rows}, {}, rows, {}}, 7, /*row_padding=*/16, direction);
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    EXPECT_EQ(call.mistakes(), "");
    for (const Argument& argument : spec->signature(direction)) {
      if (argument.role != ArgumentRole::kOutput) continue;
      const std::vector<bool> used = call.used_bytes(argument.name);
      for (size_t i = 0; i < used.size(); ++i) {
        if (used[i]) continue;
        ASSERT_EQ(call.bytes(argument.name)[i], HostCall::kUntouched) << argument.name << " " << i;
      }
    }
  }
}

TEST(HostRows, EveryOperator) {
  for (const RowCase& row : row_cases({{"width", 50}})) check(row.json, 41);
}

TEST(HostRows, EveryType) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (const char* weight : {dtype, "fp32"})
      check({{"op", "layer_norm"}, {"width", 64}, {"dtype", dtype}, {"weight_dtype", weight}}, 20);
  }
}

// Widths below, at and behind whole vectors; more rows than items; none.
TEST(HostRows, EveryWidthAndNumberOfRows) {
  for (const int64_t width : {1, 2, 7, 8, 100, 1000, 16384}) check({{"op", "layer_norm"}, {"width", width}}, 5);
  for (const int64_t rows : {0, 1, 131, 5000}) check({{"op", "rms_norm"}, {"width", 64}}, rows);
}

TEST(HostRows, AnyNumberOfThreadsGivesTheSameBits) {
  const OpSpecPtr spec = make_spec({{"op", "layer_norm"}, {"width", 64}});
  const HostHandle alone(*spec, 1, Direction::kBackward), together(*spec, 3, Direction::kBackward);
  HostCall call(spec, {{5000}, {}, 5000, {}}, 7, 0, Direction::kBackward), again = call;
  ASSERT_EQ(call.launch(alone), 0) << call.error();
  ASSERT_EQ(again.launch(together), 0) << again.error();
  for (const char* name : {"dx", "dweight", "dbias"}) EXPECT_EQ(call.bytes(name), again.bytes(name)) << name;
}

TEST(HostRows, WithoutRowsSumsAreZero) {
  const OpSpecPtr spec = make_spec({{"op", "layer_norm"}, {"width", 8}});
  const HostHandle handle(*spec, 1, Direction::kBackward);
  HostCall call(spec, {{0}, {}, 0, {}}, 7, 0, Direction::kBackward);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.read("dweight").reals, std::vector<double>(8, 0));
  EXPECT_EQ(call.read("dbias").reals, std::vector<double>(8, 0));
}

}  // namespace
}  // namespace hstujit
