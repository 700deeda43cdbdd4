// The row family on the host against the float64 reference, through the C boundary.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/spec/sequence_rows.h"
#include "tests/host/host_call.h"
#include "tests/row/large_means.h"
#include "tests/row/row_cases.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;

void check(const OpSpecPtr& spec, const Lengths& lengths) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    if (!spec->supports(direction) || spec->program(direction) != nullptr) continue;
    SCOPED_TRACE(fmt::format("{} {} rows {}", spec->to_json().dump(), to_string(direction), lengths.total_rows()));
    const HostHandle handle(*spec, 3, direction);
    ASSERT_NE(handle.get(), nullptr) << handle.error();
    HostCall call(spec, lengths, 7, /*row_padding=*/16, direction);
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    EXPECT_EQ(call.mistakes(), "");
    EXPECT_EQ(call.written_elsewhere(), "");
  }
}

void check(const Json& json, int64_t rows) { check(make_spec(json), Lengths{{rows}, {}, rows, {}}); }

TEST(HostRows, EveryOperator) {
  for (const RowCase& row : row_cases({{"width", 50}})) check(row.json, 41);
}

TEST(HostRows, EveryOperatorOverSequences) {
  for (const std::vector<int64_t>& drawn :
       std::vector<std::vector<int64_t>>{{0, 1, 37, 0, 9, 0}, {13}, {0}, {}, {700, 2, 0, 901}}) {
    for (const RowCase& row : sequence_cases({{"width", 50}})) check(row.spec, sequence_lengths(*row.spec, drawn));
  }
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

// Groups below, at and behind whole vectors.
TEST(HostRows, EveryGroup) {
  for (const int64_t head_width : {1, 3, 8, 20, 64}) {
    check({{"op", "hstu_norm_mul_dropout"},
           {"width", 3 * head_width},
           {"group_norm", true},
           {"heads", 3},
           {"concat_x", true}},
          29);
  }
}

// Whatever the ratio, backward drops what forward drops: both agree with the reference.
TEST(HostRows, EveryRatioOfDropout) {
  const OpSpecPtr spec =
      make_spec({{"op", "hstu_norm_mul_dropout"}, {"width", 20}, {"concat_x", true}, {"dropout", true}});
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const HostHandle handle(*spec, 2, direction);
    ASSERT_NE(handle.get(), nullptr) << handle.error();
    const Signature signature = spec->signature(direction);
    for (const double ratio : {0.0, 0.5, 0.9999, 1.0}) {
      SCOPED_TRACE(fmt::format("{} {}", to_string(direction), ratio));
      HostCall call(spec, {{300}, {}, 300, {}}, 7, 0, direction);
      call.inputs()[static_cast<size_t>(find_argument(signature, "dropout_ratio"))].scalar = ratio;
      call.inputs()[static_cast<size_t>(find_argument(signature, "seed"))].scalar = -5;
      ASSERT_EQ(call.launch(handle), 0) << call.error();
      EXPECT_EQ(call.mistakes(), "");
    }
  }
}

// A number drops the same bits whether it is an argument of the launch or the element of a tensor.
TEST(HostRows, ASeedInATensorDropsWhatTheNumberDrops) {
  Json json = {{"op", "hstu_norm_mul_dropout"}, {"width", 20}, {"concat_x", true}, {"dropout", true}};
  const OpSpecPtr number = make_spec(json);
  json["seed_tensor"] = true;
  const OpSpecPtr tensor = make_spec(json);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const HostHandle of_number(*number, 2, direction), of_tensor(*tensor, 2, direction);
    ASSERT_NE(of_tensor.get(), nullptr) << of_tensor.error();
    for (const int64_t seed : {int64_t{-5}, int64_t{0x7123456789abcdef}}) {
      HostCall one(number, {{300}, {}, 300, {}}, 7, 0, direction), other(tensor, {{300}, {}, 300, {}}, 7, 0, direction);
      one.pack_inputs();
      other.pack_inputs();
      one.value("seed").integer = seed;
      std::memcpy(other.value("seed_tensor").data, &seed, sizeof seed);
      ASSERT_EQ(one.launch(of_number), 0) << one.error();
      ASSERT_EQ(other.launch(of_tensor), 0) << other.error();
      for (const Argument& argument : number->signature(direction)) {
        if (argument.role != ArgumentRole::kOutput) continue;
        EXPECT_EQ(one.bytes(argument.name), other.bytes(argument.name)) << argument.name << " " << seed;
      }
    }
  }
}

// Rows of a larger tensor, by their numbers there, drop what they drop in it.
TEST(HostRows, RowsDropWhatTheRowsOfTheirNumbersDrop) {
  constexpr int64_t kWidth = 20, kRows = 300;
  Json json = {{"op", "hstu_norm_mul_dropout"}, {"width", kWidth}, {"concat_x", true}, {"dropout", true}};
  const OpSpecPtr all = make_spec(json);
  json["row_numbers"] = true;
  const OpSpecPtr some = make_spec(json);
  const std::vector<int64_t> numbers = {7, 0, 299, 7, 120, 121};
  const auto count = static_cast<int64_t>(numbers.size());
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    HostCall whole(all, {{kRows}, {}, kRows, {}}, 7, 0, direction),
        part(some, {{count}, {}, count, {}}, 7, 0, direction);
    whole.pack_inputs();
    part.pack_inputs();
    std::memcpy(part.value("row_numbers").data, numbers.data(), numbers.size() * sizeof(int64_t));
    for (const Argument& argument : all->signature(direction)) {
      if (argument.role != ArgumentRole::kInput || argument.kind != ArgumentKind::kTensor) continue;
      HstujitHostValue &from = whole.value(argument.name), &to = part.value(argument.name);
      const auto bytes = static_cast<size_t>(argument.shape.back().bias) * size_of(argument.dtype);
      const bool rows = has_rows(argument);
      for (size_t i = 0; i < (rows ? numbers.size() : 1); ++i) {
        std::memcpy(static_cast<char*>(to.data) + i * bytes,
                    static_cast<const char*>(from.data) + (rows ? static_cast<size_t>(numbers[i]) : 0) * bytes, bytes);
      }
    }
    ASSERT_EQ(whole.launch(HostHandle(*all, 2, direction)), 0) << whole.error();
    ASSERT_EQ(part.launch(HostHandle(*some, 2, direction)), 0) << part.error();
    for (const Argument& argument : all->signature(direction)) {
      if (argument.role != ArgumentRole::kOutput || !has_rows(argument)) continue;
      const auto bytes =
          static_cast<ptrdiff_t>(argument.shape.back().bias) * static_cast<ptrdiff_t>(size_of(argument.dtype));
      const auto &from = whole.bytes(argument.name), &to = part.bytes(argument.name);
      for (size_t i = 0; i < numbers.size(); ++i) {
        EXPECT_TRUE(std::equal(to.begin() + static_cast<ptrdiff_t>(i) * bytes,
                               to.begin() + static_cast<ptrdiff_t>(i + 1) * bytes, from.begin() + numbers[i] * bytes))
            << argument.name << " " << i;
      }
    }
  }
}

TEST(HostRows, ARatioOfDropoutThatIsNoneIsRefused) {
  const OpSpecPtr spec = make_spec({{"op", "hstu_norm_mul_dropout"}, {"width", 20}, {"dropout", true}});
  const HostHandle handle(*spec, 2, Direction::kForward);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  HostCall call(spec, {{300}, {}, 300, {}}, 7, 0, Direction::kForward);
  const Signature signature = spec->signature(Direction::kForward);
  call.inputs()[static_cast<size_t>(find_argument(signature, "dropout_ratio"))].scalar = 1.5;
  EXPECT_NE(call.launch(handle), 0);
  EXPECT_EQ(call.error(), "dropout_ratio is 1.5; it must be from 0 to 1");
}

TEST(HostRows, AnyNumberOfThreadsGivesTheSameBits) {
  const OpSpecPtr spec = make_spec({{"op", "layer_norm"}, {"width", 64}});
  const HostHandle alone(*spec, 1, Direction::kBackward), together(*spec, 3, Direction::kBackward);
  HostCall call(spec, {{5000}, {}, 5000, {}}, 7, 0, Direction::kBackward), again = call;
  ASSERT_EQ(call.launch(alone), 0) << call.error();
  ASSERT_EQ(again.launch(together), 0) << again.error();
  for (const char* name : {"dx", "dweight", "dbias"}) EXPECT_EQ(call.bytes(name), again.bytes(name)) << name;
}

// Widths below and behind whole vectors, and long sums.
TEST(HostRows, LargeMeansLeaveWhatElementsDifferBy) {
  for (const int64_t width : {2, 17, 64, 100, 1000, 1024, 8191, 16384}) {
    for (const Json& json : centered_norms(width, "fp32")) {
      SCOPED_TRACE(json.dump());
      const OpSpecPtr spec = make_spec(json);
      const auto launch = [&](Direction direction) {
        return [&spec, direction](HostCall& call) {
          const HostHandle handle(*spec, 2, direction);
          ASSERT_EQ(call.launch(handle), 0) << call.error();
        };
      };
      if (width > 2) {  // two elements: what is left of 1 by rounding at 1000 is all that a spread may be
        check_large_mean(spec, Direction::kForward, 9, launch(Direction::kForward));
        check_large_mean(spec, Direction::kBackward, 9, launch(Direction::kBackward));
      }
      check_constant_rows(spec, 14, launch(Direction::kForward));
    }
  }
}

// The square of 1e30 is none of fp32: the row's variance is not known, and neither are its elements.
TEST(HostRows, RowsWithInfiniteSquaresAreNaN) {
  const OpSpecPtr spec = make_spec({{"op", "layer_norm"}, {"width", 16}, {"dtype", "fp32"}});
  const HostHandle handle(*spec, 2, Direction::kForward);
  HostCall call(spec, {{3}, {}, 3, {}}, 7, 0, Direction::kForward);
  reals_of(*spec, Direction::kForward, call, "x")[16] = 1e30;
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  const std::vector<std::byte>& bytes = call.bytes("out");
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  for (size_t i = 0; i < 48; ++i) EXPECT_EQ(std::isnan(out[i]), i / 16 == 1) << i << " " << out[i];
}

// Thousands of rows, whose sums are as exact as if they were of float64: what PyTorch's own tests allow beside a sum
// near 0 is less than what sums of fp32 lose, one row after the other.
TEST(HostRows, SumsOfThousandsOfRowsAreExact) {
  const OpSpecPtr spec = make_spec({{"op", "layer_norm"}, {"width", 68}, {"dtype", "fp32"}});
  const Lengths lengths{{20000}, {}, 20000, {}};
  const HostHandle handle(*spec, 2, Direction::kBackward);
  HostCall call(spec, lengths, 7, 0, Direction::kBackward);
  std::vector<double>& dout = reals_of(*spec, Direction::kBackward, call, "dout");
  for (double& element : dout) element = static_cast<float>(element + 1);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  std::vector<HostValue> expected = call.inputs();
  spec->reference(Direction::kBackward, lengths, expected);
  const auto at = static_cast<size_t>(find_argument(spec->signature(Direction::kBackward), "dbias"));
  for (size_t i = 0; i < 68; ++i) {
    const double sum = expected[at].tensor.reals[i];
    EXPECT_NEAR(call.read("dbias").reals[i], sum, 1.5e-7 * std::abs(sum)) << i;
  }
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
