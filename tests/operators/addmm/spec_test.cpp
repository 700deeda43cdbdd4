// addmm: what it takes, its reference, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "compiler/spec/config.h"
#include "compiler/spec/program.h"
#include "tests/operators/signature_text.h"

namespace hstujit {
namespace {

OpSpecPtr addmm(Json changes) {
  Json json = {{"op", "addmm"}, {"k", 8}, {"n", 16}};
  json.update(changes);
  return *parse_op_spec(json, "");
}

TEST(Addmm, Signature) {
  EXPECT_EQ(signature_text(*addmm({{"input", "vector"}})), "input(16) mat1(L, 8) mat2(8, 16) alpha beta out(L, 16)");
  EXPECT_EQ(signature_text(*addmm({{"input", "matrix"}, {"transpose_mat2", true}})),
            "input(L, 16) mat1(L, 8) mat2(16, 8) alpha beta out(L, 16)");
  EXPECT_EQ(signature_text(*addmm({{"input", "none"}})), "mat1(L, 8) mat2(8, 16) alpha out(L, 16)");
}

TEST(Addmm, Work) {
  const Work work = addmm({{"input", "none"}})->work(Direction::kForward, {{10}, {}, 10, {}});
  EXPECT_EQ(work.flops, 2 * 10 * 8 * 16);
  EXPECT_EQ(work.bytes, 2 * (10 * 8 + 8 * 16 + 10 * 16));
}

// A row by hand: rows 1, 2, ... of mat2 times 1, 2, ..., and the input.
TEST(Addmm, Reference) {
  for (const bool transpose : {false, true}) {
    const OpSpecPtr spec = addmm({{"input", "vector"}, {"transpose_mat2", transpose}});
    const Lengths lengths = {{1}, {}, 1, {}};
    std::vector<HostValue> values = spec->make_inputs(Direction::kForward, lengths, 1);
    for (int i = 0; i < 8; ++i) values[1].tensor.reals[static_cast<size_t>(i)] = i + 1;
    for (int i = 0; i < 8; ++i) {
      for (int column = 0; column < 16; ++column)
        values[2].tensor.reals[static_cast<size_t>(transpose ? column * 8 + i : i * 16 + column)] = i + 100 * column;
    }
    for (double& element : values[0].tensor.reals) element = 3;
    values[3].scalar = 2;
    values[4].scalar = 10;
    spec->reference(Direction::kForward, lengths, values);
    ASSERT_EQ(values[5].tensor.shape, (std::vector<int64_t>{1, 16}));
    // sum of (i + 1) i, and of i + 1, times 100 for each column
    for (int column = 0; column < 16; ++column)
      EXPECT_EQ(values[5].tensor.reals[static_cast<size_t>(column)], 2 * (168 + 3600 * column) + 30);
  }
}

// The first columns are silu of the sum: at 0 that is 0, and x / (1 + exp(-x)) elsewhere. The others are as they were.
TEST(Addmm, SiluOfFirstColumns) {
  const Lengths lengths = {{3}, {}, 3, {}};
  const OpSpecPtr plain = addmm({{"input", "vector"}}), some = addmm({{"input", "vector"}, {"silu_columns", 5}});
  std::vector<HostValue> values = plain->make_inputs(Direction::kForward, lengths, 1), activated = values;
  plain->reference(Direction::kForward, lengths, values);
  some->reference(Direction::kForward, lengths, activated);
  for (size_t i = 0; i < values[5].tensor.reals.size(); ++i) {
    const double x = values[5].tensor.reals[i];
    EXPECT_DOUBLE_EQ(activated[5].tensor.reals[i], i % 16 < 5 ? x / (1 + std::exp(-x)) : x) << i;
  }
}

TEST(Addmm, SiluColumnsHaveNoBackward) {
  EXPECT_FALSE(addmm({{"silu_columns", 16}})->supports(Direction::kBackward));
  EXPECT_EQ(parse_op_spec({{"op", "addmm"}, {"k", 8}, {"n", 16}, {"silu_columns", 17}}, "ops[0]").status().message(),
            "ops[0].silu_columns is 17; allowed: at most n, which is 16");
  // A model without has the key that it had.
  EXPECT_EQ(key_text(*addmm({{"silu_columns", 0}})), key_text(*addmm(Json::object())));
  EXPECT_NE(key_text(*addmm({{"silu_columns", 8}})), key_text(*addmm(Json::object())));
}

// The gradient of alpha * sum of out * dout with respect to mat2, by differences.
TEST(Addmm, WgradIsTheSlopeOfTheReference) {
  for (const bool transpose : {false, true}) {
    const OpSpecPtr forward = addmm({{"input", "none"}, {"transpose_mat2", transpose}});
    const OpSpecPtr wgrad =
        *parse_op_spec({{"op", "addmm_wgrad"}, {"k", 8}, {"n", 16}, {"transpose_mat2", transpose}}, "");
    EXPECT_EQ(signature_text(*wgrad),
              transpose ? "dout(L, 16) mat1(L, 8) alpha out(16, 8)" : "mat1(L, 8) dout(L, 16) alpha out(8, 16)");
    const Lengths lengths = {{3}, {}, 3, {}};
    std::vector<HostValue> gradient = wgrad->make_inputs(Direction::kForward, lengths, 1);
    std::vector<HostValue> values = forward->make_inputs(Direction::kForward, lengths, 2);
    values[0] = gradient[transpose ? 1 : 0];
    const std::vector<double> dout = gradient[transpose ? 0 : 1].tensor.reals;
    gradient[2].scalar = values[2].scalar = 0.5;
    wgrad->reference(Direction::kForward, lengths, gradient);
    const auto loss = [&] {
      forward->reference(Direction::kForward, lengths, values);
      double sum = 0;
      for (size_t i = 0; i < dout.size(); ++i) sum += values[3].tensor.reals[i] * dout[i];
      return sum;
    };
    for (size_t i = 0; i < values[1].tensor.reals.size(); i += 5) {
      const double before = loss();
      values[1].tensor.reals[i] += 1;  // it is linear
      EXPECT_NEAR(loss() - before, gradient[3].tensor.reals[i], 1e-9) << i;
    }
  }
}

TEST(Addmm, BackwardIsAProgram) {
  EXPECT_EQ(signature_text(*addmm({{"input", "vector"}}), Direction::kBackward),
            "mat1(L, 8) mat2(8, 16) dout(L, 16) alpha beta dmat1(L, 8) dmat2(8, 16) dinput(16)");
  EXPECT_EQ(signature_text(*addmm({{"input", "matrix"}, {"transpose_mat2", true}}), Direction::kBackward),
            "mat1(L, 8) mat2(16, 8) dout(L, 16) alpha dmat1(L, 8) dmat2(16, 8)");
  EXPECT_TRUE(addmm({{"input", "vector"}, {"n", 16392}})->supports(Direction::kBackward));
}

// Gradients of every input, against differences of the reference, which is linear in each of them.
TEST(Addmm, GradientsAreTheSlopeOfTheReference) {
  for (const char* input : {"none", "vector", "matrix"}) {
    for (const bool transpose : {false, true}) {
      const OpSpecPtr spec = addmm({{"input", input}, {"transpose_mat2", transpose}});
      const Lengths lengths = {{3}, {}, 3, {}};
      const Signature forward = spec->signature(Direction::kForward), backward = spec->signature(Direction::kBackward);
      std::vector<HostValue> values = spec->make_inputs(Direction::kForward, lengths, 2);
      std::vector<HostValue> gradients = spec->make_inputs(Direction::kBackward, lengths, 1);
      const auto of_forward = [&](std::string_view name) -> HostValue& {
        return values[static_cast<size_t>(find_argument(forward, name))];
      };
      of_forward("alpha").scalar = 0.5;
      if (find_argument(forward, "beta") >= 0) of_forward("beta").scalar = 3;
      for (size_t i = 0; i < backward.size(); ++i) {
        if (backward[i].role == ArgumentRole::kInput && backward[i].name != "dout")
          gradients[i] = of_forward(backward[i].name);
      }
      const auto dout = gradients[static_cast<size_t>(find_argument(backward, "dout"))].tensor.reals;
      spec->reference(Direction::kBackward, lengths, gradients);
      const auto loss = [&] {
        spec->reference(Direction::kForward, lengths, values);
        const std::vector<double>& out = of_forward("out").tensor.reals;
        return std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
      };
      for (size_t i = 0; i < backward.size(); ++i) {
        if (backward[i].role == ArgumentRole::kInput) continue;
        std::vector<double>& elements = of_forward(backward[i].name.substr(1)).tensor.reals;
        ASSERT_EQ(gradients[i].tensor.reals.size(), elements.size()) << backward[i].name;
        for (size_t e = 0; e < elements.size(); e += 5) {
          const double before = loss();
          elements[e] += 1;
          EXPECT_NEAR(loss() - before, gradients[i].tensor.reals[e], 1e-9) << input << " " << backward[i].name << e;
          elements[e] -= 1;
        }
      }
    }
  }
}

// fp32 alone has a precision, and its gradient has the same.
TEST(Addmm, Precision) {
  const OpSpecPtr ieee = addmm({{"dtype", "fp32"}, {"precision", "ieee"}, {"input", "vector"}});
  EXPECT_EQ(addmm({{"dtype", "fp16"}, {"precision", "ieee"}})->to_json(), addmm({{"dtype", "fp16"}})->to_json());
  EXPECT_NE(ieee->to_json(), addmm({{"dtype", "fp32"}, {"input", "vector"}})->to_json());
  EXPECT_EQ(key_text(*addmm(Json::object())), R"({"op":"addmm","k":8,"n":16})")
      << "keys of 16-bit products stay as they are";
  EXPECT_EQ(ieee->error_bound(Direction::kForward), 1e-5);
  EXPECT_EQ(addmm({{"dtype", "fp32"}})->error_bound(Direction::kForward), 1e-3);
  for (const ProgramStep& step : ieee->program(Direction::kBackward)->steps) {
    const Json json = step.spec->to_json();
    EXPECT_EQ(json["dtype"], "fp32");
    EXPECT_EQ(json.value("precision", "ieee"), "ieee") << json;
  }
}

// Factors rounded to tf32 are off by as much as the variance says; those of ieee are not rounded.
TEST(Addmm, VariancesAreThoseOfRounding) {
  for (const bool transpose : {false, true}) {
    const Json json = {{"dtype", "fp32"}, {"input", "vector"}, {"transpose_mat2", transpose}};
    const OpSpecPtr spec = addmm(json);
    const Lengths lengths = {{200}, {}, 200, {}};
    std::vector<HostValue> exact = spec->make_inputs(Direction::kForward, lengths, 5), rounded = exact;
    exact[3].scalar = rounded[3].scalar = 0.5;
    constexpr double kTf32 = 0x1p-11;
    for (const size_t factor : {1, 2}) {
      for (double& element : rounded[factor].tensor.reals) {
        int exponent = 0;
        const double mantissa = std::frexp(element, &exponent);
        element = std::ldexp(std::nearbyint(mantissa / kTf32) * kTf32, exponent);
      }
    }
    spec->reference(Direction::kForward, lengths, exact);
    spec->reference(Direction::kForward, lengths, rounded);
    const std::vector<double> variances = spec->error_variances(Direction::kForward, exact, {})[5];
    ASSERT_EQ(variances.size(), exact[5].tensor.reals.size());
    double squares = 0, expected = 0, of_ieee = 0;
    for (size_t i = 0; i < variances.size(); ++i) {
      const double error = rounded[5].tensor.reals[i] - exact[5].tensor.reals[i];
      squares += error * error;
      expected += variances[i];
    }
    EXPECT_NEAR(squares / expected, 1, 0.2);
    Json ieee = json;
    ieee["precision"] = "ieee";
    const std::vector<std::vector<double>> of_all = addmm(ieee)->error_variances(Direction::kForward, exact, {});
    for (const double variance : of_all[5]) of_ieee += variance;
    EXPECT_LT(of_ieee, 1e-5 * expected);
    EXPECT_GT(of_ieee, 0);
  }
}

TEST(Addmm, SaysWhatIsWrong) {
  const auto error = [](const Json& json) { return parse_op_spec(json, "ops[0]").status().message(); };
  EXPECT_EQ(error({{"op", "addmm"}, {"k", 0}, {"n", 16}}),
            "ops[0].k is 0; allowed: an integer from 1 to 65536 (columns of mat1, which the product sums over)");
  EXPECT_EQ(error({{"op", "addmm"}, {"k", 8}}),
            "ops[0].n is missing; allowed: an integer from 1 to 65536 (columns of the result)");
  EXPECT_EQ(error({{"op", "addmm"}, {"k", 8}, {"n", 8}, {"dtype", "fp32"}, {"alignment", 2}}),
            "ops[0].alignment is 2, but an element of fp32 has 4 bytes; allowed: a power of two from 4 to 16");
}

// Each tensor is aligned as its own rows are, and to `alignment` at most.
TEST(Addmm, RowsOfAnyWidth) {
  const auto alignments = [](const OpSpecPtr& spec) {
    std::vector<int> alignments;
    for (const Argument& argument : spec->signature(Direction::kForward)) {
      if (argument.kind == ArgumentKind::kTensor) alignments.push_back(argument.alignment);
    }
    return alignments;
  };
  const auto sized = [](int64_t k, int64_t n, const Json& more = Json::object()) {
    Json json = {{"k", k}, {"n", n}, {"input", "vector"}};
    json.update(more);
    return addmm(json);
  };
  using Alignments = std::vector<int>;  // of input, mat1, mat2 and out
  EXPECT_EQ(alignments(sized(64, 72)), (Alignments{4, 16, 16, 16}));
  EXPECT_EQ(alignments(sized(50, 200)), (Alignments{4, 4, 16, 16}));
  EXPECT_EQ(alignments(sized(200, 25)), (Alignments{2, 16, 2, 2}));
  EXPECT_EQ(alignments(sized(200, 25, {{"transpose_mat2", true}})), (Alignments{2, 16, 16, 2}));
  EXPECT_EQ(alignments(sized(12, 6, {{"dtype", "fp32"}})), (Alignments{8, 16, 8, 8}));
  EXPECT_EQ(alignments(sized(64, 72, {{"alignment", 2}})), (Alignments{2, 2, 2, 2}));
  EXPECT_EQ(key_text(*sized(50, 25)), key_text(*sized(50, 25, {{"alignment", 4}})));
  EXPECT_NE(key_text(*sized(64, 72)), key_text(*sized(64, 72, {{"alignment", 4}})));
  EXPECT_EQ(key_text(*addmm({{"k", 50}, {"n", 200}})), R"({"op":"addmm","k":50,"n":200})");
  const OpSpecPtr columns = sized(64, 72, {{"alignment", 4}});
  for (const ProgramStep& step : columns->program(Direction::kBackward)->steps)
    EXPECT_EQ(step.spec->to_json()["alignment"], 4);
}

}  // namespace
}  // namespace hstujit
