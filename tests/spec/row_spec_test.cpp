// Specs of the row family: parameters and their canonical form, signatures, and the reference by hand.
#include "compiler/spec/row_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace hstujit {
namespace {

Result<OpSpecPtr> parse(const char* json) { return parse_op_spec(Json::parse(json), "ops[0]"); }

std::string error_of(const char* json) {
  const auto spec = parse(json);
  return spec.ok() ? "" : spec.status().message();
}

std::string arguments_of(const OpSpec& spec, Direction direction) {
  std::string text;
  for (const Argument& argument : spec.signature(direction)) {
    text += text.empty() ? "" : ", ";
    text += argument.name;
    if (argument.kind != ArgumentKind::kTensor) continue;
    text +=
        " " + std::string(to_string(argument.dtype)) + shape_text(argument) + ":" + std::to_string(argument.alignment);
  }
  return text;
}

TEST(RowSpec, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(R"({"op": "layer_norm"})"),
            "ops[0].width is missing; allowed: an integer from 1 to 16384 (elements of a row)");
  EXPECT_EQ(error_of(R"({"op": "layer_norm", "width": 16385})"),
            "ops[0].width is 16385; allowed: an integer from 1 to 16384 (elements of a row)");
  EXPECT_EQ(error_of(R"({"op": "rms_norm", "width": 8, "alignment": 6})"),
            "ops[0].alignment is 6; allowed: 2, 4, 8 or 16");
  EXPECT_EQ(error_of(R"({"op": "rms_norm", "width": 8, "dtype": "fp32", "alignment": 2})"),
            "ops[0].alignment is 2, but an element of fp32 has 4 bytes; allowed: a power of two from 4 to 16");
  EXPECT_EQ(error_of(R"({"op": "rms_norm", "width": 8, "dtype": "bf16", "weight_dtype": "fp16"})"),
            "ops[0].weight_dtype is fp16, but rows are bf16; allowed: fp32, or the type of rows");
}

TEST(RowSpec, EqualMeaningsHaveOneForm) {
  const auto key = [](const char* json) { return key_text(**parse(json)); };
  // Rows of 100 elements that follow one another begin at multiples of 8 bytes.
  EXPECT_EQ(key(R"({"op": "layer_norm", "width": 100})"), key(R"({"op": "layer_norm", "width": 100, "alignment": 8})"));
  EXPECT_NE(key(R"({"op": "layer_norm", "width": 100})"), key(R"({"op": "layer_norm", "width": 100, "alignment": 4})"));
  EXPECT_EQ(key(R"({"op": "layer_norm", "width": 8, "weight": false, "bias": false, "weight_dtype": "bf16"})"),
            key(R"({"op": "layer_norm", "width": 8, "weight": false, "bias": false})"));
  EXPECT_EQ(key(R"({"op": "rms_norm", "width": 8})"), R"({"op":"rms_norm","width":8})");
}

TEST(RowSpec, Signatures) {
  const auto norm = parse(R"({"op": "layer_norm", "width": 100})");
  EXPECT_EQ(arguments_of(**norm, Direction::kForward),
            "x bf16(L, 100):8, weight fp32(100):16, bias fp32(100):16, eps, out bf16(L, 100):8");
  EXPECT_EQ(arguments_of(**norm, Direction::kBackward),
            "x bf16(L, 100):8, dout bf16(L, 100):8, weight fp32(100):16, eps, dx bf16(L, 100):8, dweight fp32(100):4, "
            "dbias fp32(100):4");
  const auto plain = parse(R"({"op": "rms_norm", "width": 7, "dtype": "fp16", "weight": false, "silu": true})");
  EXPECT_EQ(arguments_of(**plain, Direction::kForward), "x fp16(L, 7):2, eps, out fp16(L, 7):2");
  EXPECT_EQ(arguments_of(**plain, Direction::kBackward), "x fp16(L, 7):2, dout fp16(L, 7):2, eps, dx fp16(L, 7):2");
}

TEST(RowSpec, WorkCountsBytesOnce) {
  const auto norm = parse(R"({"op": "layer_norm", "width": 100})");
  const Lengths lengths{{3, 7}, {}, 7, {}};
  EXPECT_EQ((*norm)->work(Direction::kForward, lengths).bytes, 2 * 10 * 100 * 2 + 2 * 100 * 4);
  EXPECT_EQ((*norm)->work(Direction::kBackward, lengths).bytes, 3 * 10 * 100 * 2 + 3 * 100 * 4);
}

// Values by argument, of x with two rows and four columns.
std::vector<HostValue> values_of(const OpSpec& spec, Direction direction, const std::vector<double>& x,
                                 const std::vector<double>& dout) {
  const Signature signature = spec.signature(direction);
  std::vector<HostValue> values(signature.size());
  const auto set = [&](const char* name, std::vector<double> reals) {
    const int index = find_argument(signature, name);
    if (index < 0) return;
    HostTensor& tensor = values[static_cast<size_t>(index)].tensor;
    tensor.shape = {4};
    if (signature[static_cast<size_t>(index)].shape.size() == 2) tensor.shape = {2, 4};
    tensor.reals = std::move(reals);
  };
  set("x", x);
  set("dout", dout);
  set("weight", {1, 2, 0.5, -1});
  set("bias", {10, 20, 30, 40});
  spec.reference(direction, {{2}, {}, 2, {}}, values);
  return values;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
}

TEST(RowSpec, LayerNormByHand) {
  const auto spec = parse(R"({"op": "layer_norm", "width": 4, "dtype": "fp32"})");
  // Deviations -3, -1, 1, 3 of variance 5; twice that in the second row, so n is the same.
  const double s = 1 / std::sqrt(5.0);
  const auto forward = values_of(**spec, Direction::kForward, {1, 3, 5, 7, -6, -2, 2, 6}, {});
  const std::vector<double> row = {10 - 3 * s, 20 - 2 * s, 30 + 0.5 * s, 40 - 3 * s};
  std::vector<double> both = row;
  both.insert(both.end(), row.begin(), row.end());
  expect_near(forward.back().tensor.reals, both);

  const auto backward = values_of(**spec, Direction::kBackward, {1, 3, 5, 7, -6, -2, 2, 6}, {1, 0, 0, 0, 0, 0, 2, 0});
  // Row 0: g = (1, 0, 0, 0), mean of g 1/4, mean of g * n -3s/4. Row 1: g = (0, 0, 1, 0), 1/4 and s/4, over twice s.
  const auto dx = [&](double g, double n, double mean_gn, double scale) {
    return (g - 0.25 - n * s * mean_gn) * scale;
  };
  expect_near(backward[4].tensor.reals, {dx(1, -3, -0.75 * s, s), dx(0, -1, -0.75 * s, s), dx(0, 1, -0.75 * s, s),
                                         dx(0, 3, -0.75 * s, s), dx(0, -3, 0.25 * s, s / 2), dx(0, -1, 0.25 * s, s / 2),
                                         dx(1, 1, 0.25 * s, s / 2), dx(0, 3, 0.25 * s, s / 2)});
  expect_near(backward[5].tensor.reals, {-3 * s, 0, 2 * s, 0});
  expect_near(backward[6].tensor.reals, {1, 0, 2, 0});
}

TEST(RowSpec, RmsNormByHand) {
  const auto spec = parse(R"({"op": "rms_norm", "width": 4, "dtype": "fp32", "silu": true})");
  // Mean square 25 and 100.
  const auto forward = values_of(**spec, Direction::kForward, {1, 5, 5, 7, 2, 10, 10, 14}, {});
  const auto silu = [](double z) { return z / (1 + std::exp(-z)); };
  const std::vector<double> row = {silu(0.2), silu(2), silu(0.5), silu(-1.4)};
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(forward.back().tensor.reals[i], row[i % 4], 1e-12);
}

// Gradients against differences of the forward direction.
TEST(RowSpec, GradientsAreThoseOfForward) {
  for (const char* json :
       {R"({"op": "layer_norm", "width": 4, "dtype": "fp32"})", R"({"op": "rms_norm", "width": 4, "dtype": "fp32"})",
        R"({"op": "rms_norm", "width": 4, "dtype": "fp32", "silu": true})"}) {
    const auto spec = parse(json);
    const std::vector<double> x = {0.3, -1.2, 2.5, 0.1, 1.5, 0.4, -0.7, 0.2}, dout = {1, -2, 0.5, 3, -1, 0.2, 0.6, 2};
    const auto loss = [&](const std::vector<double>& at) {
      const auto out = values_of(**spec, Direction::kForward, at, {}).back().tensor.reals;
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
      return sum;
    };
    const auto backward = values_of(**spec, Direction::kBackward, x, dout);
    const int dx = find_argument((*spec)->signature(Direction::kBackward), "dx");
    for (size_t i = 0; i < x.size(); ++i) {
      std::vector<double> up = x, down = x;
      constexpr double kStep = 1e-5;
      up[i] += kStep;
      down[i] -= kStep;
      EXPECT_NEAR(backward[static_cast<size_t>(dx)].tensor.reals[i], (loss(up) - loss(down)) / (2 * kStep), 1e-7)
          << json << " " << i;
    }
  }
}

}  // namespace
}  // namespace hstujit
