// num_contexts: its rules, its place in signatures and configs, and the mask of each number of contexts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/spec/batch.h"
#include "compiler/spec/config.h"
#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {
namespace {

Json contexts_json(const Json& changes = Json::object()) {
  Json json = {{"op", "hstu_attention"}, {"heads", 1}, {"attn_dim", 8}, {"hidden_dim", 8}, {"dtype", "fp32"}};
  json.update(changes);
  return json;
}

OpSpecPtr contexts_spec(const Json& changes = Json::object()) {
  return parse_op_spec(contexts_json(changes), "").value();
}

std::string contexts_refusal(const Json& changes) {
  return parse_op_spec(contexts_json(changes), "").status().message();
}

TEST(NumContexts, StandsForTheNumberOfAllSequences) {
  EXPECT_EQ(
      contexts_refusal({{"num_contexts", true}, {"contextual_seq_len", 3}}),
      "contextual_seq_len is 3, but num_contexts says it of each sequence; allowed: 0, or num_contexts=false with it");
  EXPECT_THAT(contexts_refusal({{"num_contexts", true}, {"full_mask", true}}), testing::HasSubstr("num_contexts"));
  EXPECT_THAT(contexts_refusal({{"num_contexts", true}, {"mask", "col <= row + 1"}}),
              testing::HasSubstr("num_contexts"));
}

TEST(NumContexts, InstancesWithoutItKeepTheirKeys) {
  const OpSpecPtr without = contexts_spec({{"num_contexts", false}});
  EXPECT_EQ(without->to_json(), contexts_spec()->to_json());
  EXPECT_FALSE(without->to_json().contains("num_contexts"));
  EXPECT_EQ(contexts_spec({{"num_contexts", true}})->to_json()["num_contexts"], true);
}

TEST(NumContexts, IsAnArgumentOfCounts) {
  const OpSpecPtr spec = contexts_spec({{"num_contexts", true}, {"offsets_dtype", "int32"}});
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const Signature signature = spec->signature(direction);
    const int at = find_argument(signature, "num_contexts");
    ASSERT_GE(at, 0);
    EXPECT_EQ(signature[static_cast<size_t>(at)].semantic, Semantic::kCounts);
    EXPECT_EQ(signature[static_cast<size_t>(at)].dtype, DataType::kInt32);
    EXPECT_LT(find_argument(signature, "num_targets"), 0);
  }
}

TEST(NumContexts, ACountIsThatOfGeneratedInputs) {
  Json entry = contexts_json({{"name", "a"}, {"max_seq_len", 64}, {"lengths", {0, 3, 50}}, {"num_contexts", 5}});
  Mistakes mistakes;
  const Instance five = parse_instance(entry, "", {}, mistakes);
  ASSERT_TRUE(mistakes.empty());
  EXPECT_EQ(make_lengths(five, 64).num_contexts, (std::vector<int64_t>{0, 3, 5}));
  EXPECT_TRUE(make_lengths(five, 64).num_targets.empty());
  entry["num_contexts"] = 0;
  const Instance none = parse_instance(entry, "", {}, mistakes);
  EXPECT_TRUE(make_lengths(none, 64).num_contexts.empty());
  EXPECT_FALSE(none.spec->to_json().contains("num_contexts"));
}

// Pairs of a sequence with c contexts are those of an instance whose sequences all have c.
TEST(NumContexts, MaskAndCountsAreThoseOfTheNumber) {
  for (const bool causal : {true, false}) {
    for (const bool targets : {false, true}) {
      for (const int64_t window : {0, 2}) {
        HstuAttentionParams own = {.causal = causal, .num_targets = targets, .max_attn_len = window}, all = own;
        own.num_contexts = true;
        for (const int64_t n : {1, 2, 9}) {
          for (int64_t t = 0; t <= (targets ? n : 0); ++t) {
            for (all.contextual_seq_len = 0; all.contextual_seq_len <= n; ++all.contextual_seq_len) {
              const int64_t c = all.contextual_seq_len;
              for (int64_t i = 0; i < n; ++i) {
                for (int64_t j = 0; j < n; ++j)
                  ASSERT_EQ(hstu_attention_valid(own, i, j, n, t, c), hstu_attention_valid(all, i, j, n, t));
              }
              ASSERT_EQ(hstu_attention_valid_pairs(own, n, t, n / 2, c), hstu_attention_valid_pairs(all, n, t, n / 2));
            }
          }
        }
      }
    }
  }
}

// The reference takes a number below 0 for none, and one above the sequence's rows for all of them.
TEST(NumContexts, AreClampedToTheSequence) {
  const OpSpecPtr spec = contexts_spec({{"num_contexts", true}});
  const Lengths lengths{.rows = {4, 4, 4, 4}, .num_targets = {}, .max_seq_len = 4};
  std::vector<HostValue> values = spec->make_inputs(Direction::kForward, lengths, 3);
  const auto out_of = [&](std::vector<int64_t> contexts) {
    values[static_cast<size_t>(find_argument(spec->signature(Direction::kForward), "num_contexts"))].tensor.integers =
        std::move(contexts);
    spec->reference(Direction::kForward, lengths, values);
    return values.back().tensor.reals;
  };
  EXPECT_EQ(out_of({-7, 0, 9, 4}), out_of({0, 0, 4, 4}));
  EXPECT_NE(out_of({0, 0, 4, 4}), out_of({0, 0, 2, 4}));
}

// A sequence of four rows, two of which are contexts: these see all, the others what is before them.
TEST(NumContexts, SeeTheWholeHistory) {
  const HstuAttentionParams params = {.num_targets = true, .num_contexts = true};
  const char* const expected[] = {"xxx.", "xxx.", "xxx.", "xxxx"};
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j)
      EXPECT_EQ(hstu_attention_valid(params, i, j, 4, 1, 2), expected[i][j] == 'x') << i << " " << j;
  }
}

}  // namespace
}  // namespace hstujit
