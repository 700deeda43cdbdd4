// Masks in text as parameters of attention: what becomes of them, and which rules they keep.
#include "compiler/spec/operators/hstu_attention/own_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/spec/config.h"
#include "compiler/spec/op_spec.h"
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

TEST(OwnMask, TextsThatSayTheSameAreOneInstance) {
  const Json one = canonical(with_mask("col <= row and(row%3 == 0)"));
  EXPECT_EQ(one["mask"], "col <= row and row % 3 == 0");
  EXPECT_EQ(one["causal"], false);
  EXPECT_EQ(canonical(with_mask("(col)<=row  and row % 3==0")), one);
  EXPECT_EQ(canonical(one), one) << "the canonical form is canonical";
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
