// Masks in text as parameters of attention: what becomes of them, and which rules they keep.
#include "compiler/spec/operators/hstu_attention/own_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

#include "compiler/expression/evaluate.h"
#include "compiler/expression/formula.h"
#include "compiler/spec/config.h"
#include "compiler/spec/op_spec.h"
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"
#include "compiler/spec/operators/hstu_attention/visible_columns.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

Json with_mask(std::string_view mask, const Json& others = Json::object()) {
  Json json = {{"op", "hstu_attention"}, {"heads", 2}, {"attn_dim", 64}, {"hidden_dim", 64}, {"mask", mask}};
  json.update(others);
  return json;
}

Json canonical(const Json& json) {
  const auto spec = parse_op_spec(json, "op");
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return spec.ok() ? Json((*spec)->to_json()) : Json();
}

std::string refused_mask(const Json& json) {
  const auto spec = parse_op_spec(json, "op");
  EXPECT_FALSE(spec.ok()) << json;
  return spec.ok() ? "" : spec.status().message();
}

// The mask where a[row], a[col] and lim are these.
bool holds_with(const Expression& mask, std::span<const int64_t> values, std::array<int64_t, 3> read) {
  struct Read final : FormulaOperands {
    double real(int, int64_t) const override { return 0; }
    int64_t integer(int symbol, int64_t index) const override {
      return symbol == 5 ? elements[2] : elements[index == row ? 0 : 1];
    }
    std::array<int64_t, 3> elements;
    int64_t row;
  } operands;
  operands.elements = read;
  operands.row = values[0];
  std::vector<double> numbers(values.begin(), values.end());
  numbers.resize(mask.symbols().size());
  return Formula(mask, 0).integer_at(mask.root(), numbers, &operands) != 0;
}

TEST(OwnMask, TextsThatSayTheSameAreOneInstance) {
  const Json one = canonical(with_mask("col <= row and(row%3 == 0)"));
  EXPECT_EQ(one["mask"], "col <= row and row % 3 == 0");
  EXPECT_EQ(one["causal"], false);
  EXPECT_EQ(canonical(with_mask("(col)<=row  and row % 3==0")), one);
  EXPECT_EQ(canonical(one), one) << "the canonical form is canonical";
}

TEST(OwnMask, ReadsIntegersOfOperands) {
  const Json declared = {{"operands", "doc: row(int32), own:sequence(int64), lim: scalar(int32), s: head(grad)"},
                         {"score", "silu(x * s)"}};
  const Json one = canonical(with_mask("col<=row and doc[ row ]==doc[col] and row - col < own + lim", declared));
  EXPECT_EQ(one["mask"], "col <= row and doc[row] == doc[col] and row - col < own + lim");
  EXPECT_EQ(canonical(one), one);
  const auto refused = [&](const char* mask, const char* operands, const char* score = "silu(x)") {
    return refused_mask(with_mask(mask, {{"operands", operands}, {"score", score}}));
  };
  EXPECT_THAT(refused("col <= row and doc[row + 1] < 3", "doc: row(int32)"),
              HasSubstr("column 24: there is \"+\"; expected: doc[row] or doc[col]"));
  EXPECT_THAT(refused("col <= row and doc < 3", "doc: row(int32)"),
              HasSubstr("column 20: there is \"<\"; expected: doc"));
  EXPECT_THAT(
      refused("doc[row] < 3 and s > 0", "doc: row(int32), s: scalar", "x * s"),
      HasSubstr("column 18: a mask cannot read the operand s; masks read integers of rows, sequences and scalars"));
  EXPECT_THAT(refused("doc[n] < 3", "doc: row(int64)"), HasSubstr("column 5: there is \"n\"; expected: doc[row] or"));
  EXPECT_THAT(refused("col <= row and t[row] == t[col]", "t: row(int64)"),
              HasSubstr("column 16: a mask cannot read the operand t; rename the operand"));
  const Json named = {{"operands", "doc: row(int32), t: row"}, {"score", "silu(x) * t[col]"}};
  EXPECT_EQ(canonical(with_mask("col <= row and doc[row] < 3", named))["mask"], "col <= row and doc[row] < 3");
  EXPECT_THAT(refused("col <= row", "doc: row(int64)"), HasSubstr("neither the score nor the mask reads doc"));
}

// Bounds of a mask without operands from above and from below, by trial of all that may be read.
TEST(OwnMask, BoundsOfReadsHold) {
  const auto operands = parse_own_operands("a: row(int32), lim: scalar(int32)", 1).value();
  for (const char* text : {"col <= row and a[row] == a[col]", "not (a[row] < 2 and col < row) or col == row",
                           "where(a[col] == 1, col <= row, row - col < 5)", "where(col < 3, a[row] != lim, col <= row)",
                           "not not (a[row] <= a[col]) and (lim < 1 or col % 2 == 0)"}) {
    const Expression mask = parse_mask(text, operands).value();
    ASSERT_TRUE(reads_operands(mask));
    const Expression most = without_reads(mask, true), least = without_reads(mask, false);
    EXPECT_FALSE(reads_operands(most) || reads_operands(least));
    ExpressionEvaluator above(most), below(least);
    for (int64_t place = 0; place < 64; ++place) {
      const int64_t values[] = {place / 8, place % 8, 8, 0};
      bool always = true, ever = false;
      for (int64_t drawn = 0; drawn < 27; ++drawn) {
        const bool holds = holds_with(mask, values, {drawn % 3, drawn / 3 % 3, drawn / 9});
        always = always && holds;
        ever = ever || holds;
      }
      EXPECT_TRUE(!ever || above.at(values) != 0) << text << " " << place;
      EXPECT_TRUE(always || below.at(values) == 0) << text << " " << place;
    }
  }
}

TEST(OwnMask, WhatFieldsSayBecomesThese) {
  const auto fields = [](const Json& others) {
    Json json = with_mask("", others);
    json.erase("mask");
    return canonical(json);
  };
  EXPECT_EQ(canonical(with_mask("col <= row")), fields(Json::object()));
  EXPECT_FALSE(canonical(with_mask("row >= col")).contains("mask"));
  EXPECT_EQ(canonical(with_mask("not col > row")), fields(Json::object()));
  EXPECT_EQ(canonical(with_mask("true")), fields({{"full_mask", true}}));
  for (const char* window : {"col <= row and row - col <= 256", "0 <= row - col and row - col < 257 and col <= row",
                             "row - col < 257 and row >= col"}) {
    const Json found = canonical(with_mask(window));
    if (std::string_view(window).starts_with("0 <=")) continue;  // says the order twice: another text, the same pairs
    EXPECT_EQ(found, fields({{"max_attn_len", 256}})) << window;
  }
  EXPECT_EQ(canonical(with_mask("col <= row and (col < 32 or col > row - 256)")),
            fields({{"sla_k1", 256}, {"sla_k2", 32}}));
  EXPECT_EQ(canonical(with_mask("col <= row and (col < 32 or col > row - 256)", {{"heads", 4}}))["heads"], 4);
  EXPECT_TRUE(canonical(with_mask("col <= row and (col < 32 or row - col < 256 or col % 64 == 0)")).contains("mask"));
  // Targets see one another in a causal mask of fields only where they are the same row.
  EXPECT_TRUE(canonical(with_mask("col <= row", {{"num_targets", true}})).contains("mask"));
}

TEST(OwnMask, OtherFieldsOfTheMaskAreRefused) {
  const Json others = {{"max_attn_len", 4}, {"contextual_seq_len", 3}, {"sla_k1", 2}};
  for (const auto& [name, value] : others.items()) {
    EXPECT_THAT(refused_mask(with_mask("col < 3", {{name, value}})), HasSubstr("but mask replaces it; allowed: 0"));
  }
  EXPECT_THAT(refused_mask(with_mask("col < 3", {{"full_mask", true}})),
              HasSubstr("full_mask is true, but mask replaces it"));
  EXPECT_EQ(
      refused_mask(with_mask("col < tragets")),
      "op.mask is \"col < tragets\", but column 7: there is no \"tragets\", did you mean \"targets\"?; numbers are "
      "row, col, n, targets, functions abs, clamp, max, min, where");
  EXPECT_EQ(refused_mask(with_mask("col < n - targets")),
            "op.mask is \"col < n - targets\", but launches take no num_targets; allowed: num_targets=true, or a mask "
            "without targets");
  EXPECT_THAT(refused_mask(with_mask("4096 * row < col")), HasSubstr("may be as large as 4294967296"));
}

TEST(OwnMask, ALongTextOfAConfigIsReadToItsEnd) {
  std::string mask = "col <= row";
  for (int i = 0; i < 60; ++i) mask += " or row == " + std::to_string(i);
  Json op = with_mask(mask);
  op["max_seq_len"] = 64;
  op["name"] = "long";
  const auto config = parse_config(Json{{"version", 1}, {"ops", Json::array({op})}}.dump(), "config.json", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->instances[0].spec->to_json()["mask"], mask);
  op["mask"] = std::string(5000, ' ');
  const auto refused = parse_config(Json{{"version", 1}, {"ops", Json::array({op})}}.dump(), "config.json", "");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("but it has 4097 bytes; allowed: up to 4096"));
}

TEST(OwnMask, PairsAreThoseOfTheText) {
  HstuAttentionParams params;
  params.num_targets = true;
  params.mask = "col < n - targets and col <= row and (row // 8 == col // 8 or col % 16 == 0) or col == row";
  constexpr int64_t kRows = 70, kTargets = 6;
  int64_t pairs = 0;
  VisibleColumns visible(params, kRows, kTargets);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kRows; ++j) {
      const bool wanted = (j < kRows - kTargets && j <= i && (i / 8 == j / 8 || j % 16 == 0)) || i == j;
      ASSERT_EQ(hstu_attention_valid(params, i, j, kRows, kTargets), wanted) << i << " " << j;
      pairs += wanted ? 1 : 0;
      bool inside = !wanted;
      for (const Span& span : visible.of(i, i)) inside = inside || (span.begin <= j && j < span.end);
      ASSERT_TRUE(inside) << i << " " << j;
    }
  }
  EXPECT_EQ(hstu_attention_valid_pairs(params, kRows, kTargets), pairs);
}

TEST(OwnMask, SequencesMayHaveAMillionRows) {
  const auto spec = parse_op_spec(with_mask("row // 1024 == col // 1024"), "op");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const Signature signature = (*spec)->signature(Direction::kForward);
  EXPECT_EQ(signature[static_cast<size_t>(find_argument(signature, "max_seq_len"))].max, kMaxOwnMaskSeqLen);
}

}  // namespace
}  // namespace hstujit
