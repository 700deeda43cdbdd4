// num_softmax_heads: its rules, its place in JSON, and the reference of heads with softmax against formulas of their
// own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/reference.h"

namespace hstujit {
namespace {

Json softmax_json(const Json& changes = Json::object()) {
  Json json = {{"op", "hstu_attention"}, {"heads", 4},       {"attn_dim", 8},
               {"num_softmax_heads", 2}, {"hidden_dim", 16}, {"dtype", "fp32"}};
  json.update(changes);
  return json;
}

OpSpecPtr softmax_spec(const Json& changes = Json::object()) {
  return parse_op_spec(softmax_json(changes), "").value();
}

std::string softmax_refusal(const Json& changes) {
  return parse_op_spec(softmax_json(changes), "op").status().message();
}

TEST(SoftmaxHeads, AreAmongTheHeads) {
  EXPECT_EQ(softmax_refusal({{"num_softmax_heads", 5}}), "op.num_softmax_heads is 5, but heads is 4; allowed: 0 to 4");
  EXPECT_THAT(softmax_refusal({{"num_softmax_heads", -1}}), testing::HasSubstr("num_softmax_heads is -1"));
  EXPECT_TRUE(parse_op_spec(softmax_json({{"num_softmax_heads", 4}}), "").ok());
}

TEST(SoftmaxHeads, StandBesideScoresWithoutOperands) {
  EXPECT_EQ(softmax_refusal({{"score", "silu(x + t[row])"}, {"operands", "t: row"}}),
            "op.num_softmax_heads is 2, but the score reads operands; allowed: 0, or a score without operands");
  EXPECT_TRUE(parse_op_spec(softmax_json({{"score", "relu(x) * (1.0 + head)"}}), "").ok());
}

TEST(SoftmaxHeads, InstancesWithoutThemKeepTheirKeys) {
  const OpSpecPtr without = softmax_spec({{"num_softmax_heads", 0}});
  EXPECT_FALSE(without->to_json().contains("num_softmax_heads"));
  EXPECT_EQ(softmax_spec()->to_json()["num_softmax_heads"], 2);
  EXPECT_EQ(parse_op_spec(softmax_spec()->to_json(), "").value()->to_json(), softmax_spec()->to_json());
}

// Leaves no head that the score says anything of.
TEST(SoftmaxHeads, AllOfThemHaveOneScore) {
  EXPECT_EQ(softmax_spec({{"num_softmax_heads", 4}, {"score", "relu"}})->to_json(),
            softmax_spec({{"num_softmax_heads", 4}})->to_json());
  EXPECT_NE(softmax_spec({{"score", "relu"}})->to_json(), softmax_spec()->to_json());
}

TEST(SoftmaxHeads, LayersTakeThemInGroupsOfOneKind) {
  const auto layer = [](int64_t softmax_heads, int64_t groups) {
    return parse_op_spec({{"op", "stu_layer"},
                          {"width", 64},
                          {"heads", 4},
                          {"attn_dim", 16},
                          {"hidden_dim", 16},
                          {"num_softmax_heads", softmax_heads},
                          {"backward_head_groups", groups}},
                         "op");
  };
  EXPECT_TRUE(layer(2, 1).ok());
  EXPECT_TRUE(layer(4, 2).ok());
  EXPECT_EQ(layer(2, 2).status().message(), "op.backward_head_groups is 2; allowed: 1 where some heads have softmax");
}

class SoftmaxReference : public testing::Test {
 protected:
  static constexpr int64_t kHeads = 4, kAttn = 8, kHidden = 16;
  static constexpr double kAlpha = 0.75;
  const Lengths lengths_{{3, 0, 5}, {}, 6};

  std::vector<HostValue> computed(const OpSpecPtr& spec, Direction direction) {
    std::vector<HostValue> values = spec->make_inputs(direction, lengths_, 5);
    values[static_cast<size_t>(find_argument(spec->signature(direction), "alpha"))].scalar = kAlpha;
    spec->reference(direction, lengths_, values);
    return values;
  }
  static const std::vector<double>& reals(const OpSpecPtr& spec, Direction direction,
                                          const std::vector<HostValue>& values, std::string_view name) {
    return values[static_cast<size_t>(find_argument(spec->signature(direction), name))].tensor.reals;
  }
};

// Computes the quotient of sums of exp(S), in another order than the reference's. Other heads are those of an instance
// without softmax.
TEST_F(SoftmaxReference, ForwardIsTheMeanOfTheRowsThatARowSees) {
  constexpr Direction kForward = Direction::kForward;
  const OpSpecPtr spec = softmax_spec(), plain = softmax_spec({{"num_softmax_heads", 0}});
  const std::vector<HostValue> values = computed(spec, kForward), others = computed(plain, kForward);
  const auto& q = reals(spec, kForward, values, "q");
  const auto& k = reals(spec, kForward, values, "k");
  const auto& v = reals(spec, kForward, values, "v");
  const auto& out = reals(spec, kForward, values, "out");
  const auto& pointwise = reals(plain, kForward, others, "out");
  for (const auto& [first, n] : {std::pair{0, 3}, std::pair{3, 5}}) {
    for (int64_t i = first; i < first + n; ++i) {
      for (int64_t head = 0; head < kHeads; ++head) {
        for (int64_t d = 0; d < kHidden; ++d) {
          const auto at = static_cast<size_t>((i * kHeads + head) * kHidden + d);
          if (head >= 2) {
            ASSERT_EQ(out[at], pointwise[at]);
            continue;
          }
          double above = 0, below = 0;
          for (int64_t j = i; j >= first; --j) {
            double s = 0;
            for (int64_t c = 0; c < kAttn; ++c)
              s += q[static_cast<size_t>((i * kHeads + head) * kAttn + c)] *
                   k[static_cast<size_t>((j * kHeads + head) * kAttn + c)];
            below += std::exp(kAlpha * s);
            above += std::exp(kAlpha * s) * v[static_cast<size_t>((j * kHeads + head) * kHidden + d)];
          }
          ASSERT_NEAR(out[at], above / below, 1e-12);
        }
      }
    }
  }
}

// A row that sees one column has its row of v, whatever S is, and passes nothing on to q and k.
TEST_F(SoftmaxReference, ARowThatSeesOneColumnIsThatRowOfV) {
  const OpSpecPtr spec = softmax_spec({{"num_softmax_heads", 4}, {"mask", "col == row"}});
  const std::vector<HostValue> values = computed(spec, Direction::kForward);
  EXPECT_EQ(reals(spec, Direction::kForward, values, "out"), reals(spec, Direction::kForward, values, "v"));
  const std::vector<HostValue> gradients = computed(spec, Direction::kBackward);
  EXPECT_EQ(reals(spec, Direction::kBackward, gradients, "dv"), reals(spec, Direction::kBackward, gradients, "dout"));
  for (const char* name : {"dq", "dk"}) {
    for (const double element : reals(spec, Direction::kBackward, gradients, name)) ASSERT_EQ(element, 0) << name;
  }
}

TEST_F(SoftmaxReference, ARowThatSeesNothingIsZero) {
  const OpSpecPtr spec = softmax_spec({{"num_softmax_heads", 4}, {"mask", "col < row and col > 2"}});
  const std::vector<HostValue> values = computed(spec, Direction::kForward);
  const auto& out = reals(spec, Direction::kForward, values, "out");
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i] != 0, i / (kHeads * kHidden) == 7) << i;
}

}  // namespace
}  // namespace hstujit
