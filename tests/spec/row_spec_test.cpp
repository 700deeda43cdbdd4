// Specs of the row family: parameters and their canonical form, signatures, and gradients of the references.
#include "compiler/spec/row_spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "compiler/spec/closeness.h"
#include "tests/row/row_cases.h"
#include "tests/row/row_values.h"

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
            "ops[0].alignment is 6; allowed: 2, 4, 8, 16 (bytes that data pointers and strides are multiples of)");
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

// Sums over rows may leave next to nothing: an error of a millionth of it is then no mistake, and a thousandth is.
TEST(RowSpec, SumsOverRowsMayCancel) {
  constexpr int64_t kRows = 2;
  const auto parsed = parse(R"({"op": "layer_norm", "width": 1, "dtype": "fp32", "weight": false})");
  const auto& spec = static_cast<const RowSpec&>(**parsed);
  const std::vector<HostValue> values =
      reference_of(spec, Direction::kBackward, kRows, {{"x", {1, 2}}, {"dout", {1, -1 + 0x1p-20}}, {"eps", {1}}});
  const Lengths lengths{{kRows}, {}, kRows, {}};
  const auto dbias = static_cast<size_t>(find_argument(spec.signature(Direction::kBackward), "dbias"));
  const std::vector<double>& sum = values[dbias].tensor.reals;
  ASSERT_EQ(sum, std::vector<double>{0x1p-20});
  ReferenceComparison comparison(spec, Direction::kBackward, lengths, values, values);
  EXPECT_TRUE(comparison.of(dbias, {sum[0] + 1e-6}).good());
  EXPECT_FALSE(comparison.of(dbias, {sum[0] + 1e-3}).good());
}

// Gradients against differences of the forward direction.
TEST(RowSpec, GradientsAreThoseOfForward) {
  constexpr int64_t kRows = 2;
  const Lengths lengths{{kRows}, {}, kRows, {}};
  for (const auto& [name, op, json, spec] : row_cases({{"width", 4}, {"dtype", "fp32"}})) {
    RowValues values;
    for (const Direction direction : {Direction::kBackward, Direction::kForward}) {
      const Signature signature = spec->signature(direction);
      const std::vector<HostValue> drawn = spec->make_inputs(direction, lengths, 5);
      for (size_t i = 0; i < signature.size(); ++i) {
        if (signature[i].role == ArgumentRole::kOutput) continue;
        const bool tensor = signature[i].kind == ArgumentKind::kTensor;
        std::vector<double>& value = values[signature[i].name];
        value = tensor ? drawn[i].tensor.reals : std::vector<double>{drawn[i].scalar};
        value.insert(value.end(), drawn[i].tensor.integers.begin(), drawn[i].tensor.integers.end());
      }
    }
    values["eps"] = {0.1};  // so that nothing changes fast
    const std::vector<double> dout = values.at("dout");
    const auto loss = [&](const RowValues& at) {
      const auto out = reference_of(*spec, Direction::kForward, kRows, at).back().tensor.reals;
      EXPECT_EQ(out.size(), dout.size());
      const double sum = std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
      const auto around = at.find(std::string(kResidualGradient));
      if (around == at.end()) return sum;
      return std::inner_product(around->second.begin(), around->second.end(), at.at("x").begin(), sum);
    };
    const Signature gradients = spec->signature(Direction::kBackward);
    const std::vector<HostValue> backward = reference_of(*spec, Direction::kBackward, kRows, values);
    for (size_t k = 0; k < gradients.size(); ++k) {
      if (gradients[k].role != ArgumentRole::kOutput) continue;
      std::vector<double>& input = values.at(gradients[k].name.substr(1));
      ASSERT_EQ(backward[k].tensor.reals.size(), input.size()) << name << " " << gradients[k].name;
      for (size_t i = 0; i < input.size(); ++i) {
        constexpr double kStep = 1e-5;
        const double before = input[i];
        input[i] = before + kStep;
        const double up = loss(values);
        input[i] = before - kStep;
        const double down = loss(values);
        input[i] = before;
        EXPECT_NEAR(backward[k].tensor.reals[i], (up - down) / (2 * kStep), 1e-7)
            << name << " " << gradients[k].name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
