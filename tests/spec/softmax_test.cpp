// num_softmax_heads: its rules, its place in JSON, and the reference of heads with softmax against formulas of their
// own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/reference.h"
#include "tests/paths.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

Json softmax_json(const Json& changes = Json::object()) {
  Json json = {{"op", "hstu_attention"}, {"heads", 4},       {"attn_dim", 8},
               {"num_softmax_heads", 2}, {"hidden_dim", 16}, {"dtype", "fp32"}};
  json.update(changes);
  return json;
}

Json with(Json json, const Json& changes) {
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

TEST(SoftmaxHeads, StandBesideAnyScore) {
  EXPECT_TRUE(parse_op_spec(softmax_json({{"score", "silu(x + t[row])"}, {"operands", "t: row"}}), "").ok());
  EXPECT_TRUE(parse_op_spec(softmax_json({{"score", "relu(x) * (1.0 + head)"}}), "").ok());
}

TEST(SoftmaxHeads, NormaliseAnyScore) {
  const auto valid = [](const Json& changes) { return parse_op_spec(softmax_json(changes), "").ok(); };
  EXPECT_TRUE(valid({{"softmax_score", "x - t[row] * g"}, {"operands", "t: row(grad), g: scalar(grad)"}}));
  EXPECT_TRUE(valid({{"softmax_score", "x * g"}, {"score", "silu(x - t[row])"}, {"operands", "t: row, g: scalar"}}));
  EXPECT_TRUE(valid({{"softmax_score", "gelu"}}));
  EXPECT_EQ(
      softmax_refusal({{"softmax_score", "x * 2"}, {"num_softmax_heads", 0}}),
      "op.softmax_score is \"x * 2\", but no head has softmax; allowed: none, or num_softmax_heads above 0 with it");
  EXPECT_THAT(softmax_refusal({{"softmax_score", "x + rwo"}}),
              testing::HasSubstr("op.softmax_score is \"x + rwo\", but column 5: there is no \"rwo\""));
  EXPECT_THAT(softmax_refusal({{"softmax_score", "x + targets"}}), testing::HasSubstr("launches take no num_targets"));
  EXPECT_THAT(softmax_refusal({{"softmax_score", "w[int(x)]"}, {"operands", "w: table(9)"}}),
              testing::HasSubstr("op.softmax_score is \"w[int(x)]\", but the index of w depends on x"));
  EXPECT_THAT(softmax_refusal({{"softmax_score", "x * 2"}, {"operands", "t: row"}}),
              testing::HasSubstr("neither the score nor the mask reads t"));
  EXPECT_THAT(softmax_refusal({{"num_softmax_heads", 4}, {"score", "silu(x + t[row])"}, {"operands", "t: row"}}),
              testing::HasSubstr("neither softmax_score, which all heads have, nor the mask reads t"));
}

TEST(SoftmaxHeads, TextsThatSayTheSameAreOneInstance) {
  const auto key = [](const char* text) { return softmax_spec({{"softmax_score", text}})->to_json().dump(); };
  EXPECT_EQ(key("x"), softmax_spec()->to_json().dump());
  EXPECT_EQ(key("identity"), key("x"));
  EXPECT_EQ(key(" ( x*2 ) "), key("x * 2.0"));
  EXPECT_EQ(key("silu(x)"), key("silu"));
  EXPECT_NE(key("x * 2"), key("x"));
  EXPECT_EQ(softmax_spec({{"softmax_score", "x * 2"}})->to_json()["softmax_score"], "x * 2.0");
  EXPECT_FALSE(softmax_spec()->to_json().contains("softmax_score"));
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

// Holds a text of S against what alpha and a bias say of it.
TEST_F(SoftmaxReference, TextsDoWhatAlphaAndABiasDo) {
  const Json bias = {{"rab_heads", 4}};
  const OpSpecPtr text = softmax_spec(with(bias, {{"softmax_score", "2.0 * x"}})), plain = softmax_spec(bias);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    std::vector<HostValue> doubled = plain->make_inputs(direction, lengths_, 5), values = doubled;
    const auto alpha = static_cast<size_t>(find_argument(plain->signature(direction), "alpha"));
    doubled[alpha].scalar = 2 * (values[alpha].scalar = kAlpha);
    plain->reference(direction, lengths_, doubled);
    text->reference(direction, lengths_, values);
    for (const char* name : {"out", "dq", "dk", "dv", "drab"}) {
      if (find_argument(plain->signature(direction), name) < 0) continue;
      const auto &expected = reals(plain, direction, doubled, name), &found = reals(text, direction, values, name);
      const bool wide = std::string_view(name) == "out" || std::string_view(name) == "dv";
      const size_t columns = std::string_view(name) == "drab" ? 36 : wide ? kHidden : kAttn;
      for (size_t i = 0; i < expected.size(); ++i) {
        if (i / columns % kHeads >= 2) continue;
        ASSERT_NEAR(found[i], expected[i], 1e-12) << name << i;
      }
    }
  }
}

std::string section_of_page() {
  const std::string page = whole_file(source_path("/docs/expressions.md")).value();
  const size_t begin = page.find("## Softmax of a score\n");
  return page.substr(begin, page.find("\n## ", begin) - begin);
}

TEST(SoftmaxScore, TheExamplesOfThePageAreRead) {
  const std::string page = section_of_page();
  int examples = 0;
  for (size_t at = 0; (at = page.find("\n| `", at)) != std::string::npos; ++at) {
    const std::string row = page.substr(at + 4, page.find('\n', at + 1) - at - 4);
    const size_t end = row.find('`');
    Json changes = {{"softmax_score", row.substr(0, end)}};
    if (const size_t operands = row.find("`, of `"); operands == end)
      changes["operands"] = row.substr(end + 7, row.find('`', end + 7) - end - 7);
    EXPECT_TRUE(parse_op_spec(softmax_json(changes), "").ok()) << changes;
    ++examples;
  }
  EXPECT_EQ(examples, 6);
}

// ALiBi by its own formula, of the instance that the page writes.
TEST(SoftmaxScore, TheInstanceOfThePageIsAlibi) {
  const std::string page = section_of_page();
  const size_t begin = page.find("{\"op\"");
  Json json = Json::parse(page.substr(begin, page.find('}', begin) + 1 - begin));
  const auto longest = json["max_seq_len"].get<int64_t>();
  json.erase("max_seq_len");
  const OpSpecPtr spec = parse_op_spec(json, "").value();
  const Lengths lengths{{7}, {}, longest};
  std::vector<HostValue> values = spec->make_inputs(Direction::kForward, lengths, 5);
  const Signature signature = spec->signature(Direction::kForward);
  const auto at = [&](const char* name) { return static_cast<size_t>(find_argument(signature, name)); };
  values[at("alpha")].scalar = 0.125;
  spec->reference(Direction::kForward, lengths, values);
  const auto &q = values[at("q")].tensor.reals, &k = values[at("k")].tensor.reals, &v = values[at("v")].tensor.reals;
  for (size_t head = 0; head < 8; ++head) {
    const auto element = [&](const std::vector<double>& of, size_t row, size_t d) {
      return of[(row * 8 + head) * 64 + d];
    };
    for (size_t i = 0; i < 7; ++i) {
      double sum = 0, weighted = 0;
      for (size_t j = 0; j <= i; ++j) {
        double product = 0;
        for (size_t d = 0; d < 64; ++d) product += element(q, i, d) * element(k, j, d);
        const double slope = 1 / std::exp2(static_cast<double>(head + 1));
        const double weight = std::exp(0.125 * product - slope * static_cast<double>(i - j));
        sum += weight;
        weighted += weight * element(v, j, 3);
      }
      EXPECT_NEAR(element(values[at("out")].tensor.reals, i, 3), weighted / sum, 1e-9);
    }
  }
}

}  // namespace
}  // namespace hstujit
