// valid(i, j) against tables written by hand from docs/ops-attention.md, and the fast count of pairs against valid(i,
// j).
#include <gtest/gtest.h>

#include <chrono>

#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {
namespace {

// One text per row; 'x' where row i sees column j.
using Table = std::vector<std::string>;

Table table_of(const HstuAttentionParams& params, int64_t n, int64_t t) {
  Table table;
  for (int64_t i = 0; i < n; ++i) {
    table.emplace_back();
    for (int64_t j = 0; j < n; ++j) table.back() += hstu_attention_valid(params, i, j, n, t) ? 'x' : '.';
  }
  return table;
}

TEST(HstuAttentionMask, Causal) { EXPECT_EQ(table_of({}, 3, 0), (Table{"x..", "xx.", "xxx"})); }

TEST(HstuAttentionMask, NotCausal) {
  EXPECT_EQ(table_of({.causal = false}, 3, 0), (Table{"xxx", "xxx", "xxx"}));
  EXPECT_EQ(table_of({.causal = false, .num_targets = true}, 4, 2), (Table{"xxxx", "xxxx", "xxx.", "xx.x"}));
}

TEST(HstuAttentionMask, FullMask) {
  EXPECT_EQ(table_of({.causal = false, .full_mask = true}, 2, 0), (Table{"xx", "xx"}));
}

TEST(HstuAttentionMask, TargetsSeeHistoryAndThemselves) {
  EXPECT_EQ(table_of({.num_targets = true}, 5, 2), (Table{"x....", "xx...", "xxx..", "xxxx.", "xxx.x"}));
}

TEST(HstuAttentionMask, TargetCountIsIgnoredWithoutTheFlag) {
  EXPECT_EQ(table_of({}, 3, 2), (Table{"x..", "xx.", "xxx"}));
}

TEST(HstuAttentionMask, TargetGroups) {
  // History of 1, groups {1, 2}, {3, 4} and the shorter {5}.
  EXPECT_EQ(table_of({.num_targets = true, .target_group_size = 2}, 6, 5),
            (Table{"x.....", "xx....", "xxx...", "x..x..", "x..xx.", "x....x"}));
}

TEST(HstuAttentionMask, Window) {
  EXPECT_EQ(table_of({.max_attn_len = 1}, 4, 0), (Table{"x...", "xx..", ".xx.", "..xx"}));
}

TEST(HstuAttentionMask, WindowAroundWhenNotCausal) {
  EXPECT_EQ(table_of({.causal = false, .max_attn_len = 1}, 4, 0), (Table{"xx..", "xxx.", ".xxx", "..xx"}));
}

TEST(HstuAttentionMask, TheLastIdsIgnoreTheWindow) {
  // max_id = 4: rows with id >= 4 - 1 see everything before them.
  EXPECT_EQ(table_of({.max_attn_len = 1, .min_full_attn_seq_len = 1}, 4, 0), (Table{"x...", "xx..", ".xx.", "xxxx"}));
}

TEST(HstuAttentionMask, WindowOfTargetsReachesBackFromTheHistorysEnd) {
  EXPECT_EQ(table_of({.num_targets = true, .max_attn_len = 1}, 5, 2),
            (Table{"x....", "xx...", ".xx..", "..xx.", "..x.x"}));
}

TEST(HstuAttentionMask, ContextualRowsSeeTheHistory) {
  EXPECT_EQ(table_of({.num_targets = true, .contextual_seq_len = 2}, 6, 2),
            (Table{"xxxx..", "xxxx..", "xxx...", "xxxx..", "xxxxx.", "xxxx.x"}));
}

TEST(HstuAttentionMask, TargetsThatReachIntoTheContextLeaveTheDiagonal) {
  EXPECT_EQ(table_of({.num_targets = true, .contextual_seq_len = 3}, 4, 2), (Table{"x...", ".x..", "..x.", "...x"}));
}

TEST(HstuAttentionMask, SemiLocal) {
  // History of 4 with one leading column and a local part of two; the target sees the history only.
  EXPECT_EQ(table_of({.num_targets = true, .sla_k1 = 2, .sla_k2 = 1}, 5, 1),
            (Table{"x....", "xx...", "xxx..", "x.xx.", "xxxx."}));
  EXPECT_EQ(table_of({.sla_k2 = 2}, 4, 0), (Table{"x...", "xx..", "xx..", "xx.."}));
  EXPECT_EQ(table_of({.contextual_seq_len = 2, .sla_k1 = 1}, 4, 0), (Table{"x...", "xx..", "xxx.", "xx.x"}));
}

TEST(HstuAttentionMask, CountOfPairsAgreesWithEveryCombination) {
  int64_t checked = 0;
  for (const bool causal : {true, false})
    for (const bool targets : {true, false})
      for (const int64_t group : {1, 3})
        for (const int64_t window : {0, 1, 4, 30})
          for (const int64_t full : {0, 2})
            for (const int64_t context : {0, 1, 3})
              for (const auto& [k1, k2] : {std::pair{0, 0}, {2, 0}, {0, 3}, {3, 2}}) {
                const HstuAttentionParams params = {.causal = causal,
                                                    .num_targets = targets,
                                                    .target_group_size = group,
                                                    .max_attn_len = window,
                                                    .min_full_attn_seq_len = full,
                                                    .contextual_seq_len = context,
                                                    .sla_k1 = k1,
                                                    .sla_k2 = k2};
                for (const int64_t n : {0, 1, 2, 5, 11})
                  for (int64_t t = 0; t <= n; t += 2) {
                    int64_t pairs = 0;
                    for (int64_t i = 0; i < n; ++i)
                      for (int64_t j = 0; j < n; ++j) pairs += hstu_attention_valid(params, i, j, n, t);
                    ASSERT_EQ(hstu_attention_valid_pairs(params, n, t), pairs)
                        << "causal " << causal << " targets " << targets << " g " << group << " w " << window << " f "
                        << full << " c " << context << " sla " << k1 << " " << k2 << " n " << n << " t " << t;
                    ++checked;
                  }
              }
  EXPECT_GT(checked, 5000);
}

TEST(HstuAttentionMask, CountingIsLinear) {
  const HstuAttentionSpec spec({.heads = 4,
                                .attn_dim = 128,
                                .hidden_dim = 128,
                                .num_targets = true,
                                .max_attn_len = 2048,
                                .contextual_seq_len = 32});
  const Lengths lengths{std::vector<int64_t>(64, 16384), std::vector<int64_t>(64, 64), 16384};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GT(spec.work(Direction::kForward, lengths).flops, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "looks at every pair take minutes";
}

}  // namespace
}  // namespace hstujit
