// The mask's expression against valid(i, j) of the reference, on random masks and lengths.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "compiler/expression/evaluate.h"
#include "compiler/spec/operators/hstu_attention/bound_mask.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/operators/hstu_attention/visible_columns.h"

namespace hstujit {
namespace {

class RandomMask {
 public:
  explicit RandomMask(uint64_t seed) : random_(seed) {
    params.causal = pick(4) != 0;
    params.num_targets = pick(2) != 0;
    if (params.num_targets && pick(2) == 0) params.target_group_size = 1 + pick(5);
    switch (pick(4)) {
      case 0:
        params.max_attn_len = 1 + pick(20);
        if (pick(2) == 0) params.min_full_attn_seq_len = pick(20);
        break;
      case 1:
        params.sla_k1 = pick(10);
        params.sla_k2 = pick(10);
        if (params.semi_local()) params.causal = true;
        break;
      case 2:
        params.full_mask = pick(4) == 0;
        break;
      default:
        break;
    }
    if (pick(3) == 0) params.contextual_seq_len = pick(9);
    n = 1 + pick(48);
    t = pick(3) == 0 ? 0 : pick(std::min<int64_t>(n, 14) + 1);
  }

  int64_t pick(int64_t below) { return std::uniform_int_distribution<int64_t>(0, below - 1)(random_); }
  bool valid(int64_t i, int64_t j) const { return hstu_attention_valid(params, i, j, n, t); }
  std::string text() const { return to_json_text() + " n " + std::to_string(n) + " t " + std::to_string(t); }

  HstuAttentionParams params;
  int64_t n = 0, t = 0;

 private:
  std::string to_json_text() const { return HstuAttentionSpec(params).to_json().dump(); }
  std::mt19937_64 random_;
};

constexpr uint64_t kMasks = 600;

TEST(AttentionMask, PointsAreThoseOfTheReference) {
  int64_t pairs = 0;
  for (uint64_t seed = 0; seed < kMasks; ++seed) {
    const RandomMask mask(seed);
    const Expression bound = bound_mask(mask.params, mask.n, mask.t);
    ExpressionEvaluator evaluator(bound);
    for (int64_t i = 0; i < mask.n; ++i) {
      for (int64_t j = 0; j < mask.n + 3; ++j) {
        const int64_t point[] = {i, j};
        ASSERT_EQ(evaluator.at(point) != 0, j < mask.n && mask.valid(i, j)) << mask.text() << " at " << i << "," << j;
        ++pairs;
      }
    }
  }
  EXPECT_GT(pairs, 100000);
}

// {0, 0}, {1, 1} or {0, 1}: no pair of the tile is valid, all are, or some may be.
TEST(AttentionMask, IntervalsTellTilesApart) {
  int64_t tiles = 0, undecided = 0;
  for (uint64_t seed = 0; seed < kMasks; ++seed) {
    RandomMask mask(seed);
    const Expression bound = bound_mask(mask.params, mask.n, mask.t);
    ExpressionEvaluator evaluator(bound);
    for (int tile = 0; tile < 40; ++tile) {
      const int64_t r0 = mask.pick(mask.n), c0 = mask.pick(mask.n);
      const int64_t r1 = std::min(mask.n - 1, r0 + mask.pick(12)), c1 = std::min(mask.n - 1, c0 + mask.pick(12));
      bool all = true, any = false;
      for (int64_t i = r0; i <= r1; ++i) {
        for (int64_t j = c0; j <= c1; ++j) {
          all = all && mask.valid(i, j);
          any = any || mask.valid(i, j);
        }
      }
      const Interval values[] = {{r0, r1}, {c0, c1}};
      const Interval found = evaluator.over(values);
      ASSERT_LE(found.low, all ? 1 : 0) << mask.text() << " rows " << r0 << "-" << r1 << " columns " << c0 << "-" << c1;
      ASSERT_GE(found.high, any ? 1 : 0) << mask.text() << " rows " << r0 << "-" << r1 << " columns " << c0 << "-"
                                         << c1;
      ++tiles;
      undecided += (found.low != 0) != all || (found.high != 0) != any;
    }
  }
  EXPECT_LT(static_cast<double>(undecided), 0.03 * static_cast<double>(tiles)) << undecided << " of " << tiles;
}

TEST(AttentionMask, VisibleColumnsAreExact) {
  int64_t inexact = 0, tiles = 0;
  for (uint64_t seed = 0; seed < kMasks; ++seed) {
    RandomMask mask(seed);
    VisibleColumns visible(mask.params, mask.n, mask.t);
    for (int tile = 0; tile < 20; ++tile) {
      const int64_t r0 = mask.pick(mask.n), r1 = std::min(mask.n - 1, r0 + mask.pick(14));
      std::vector<bool> seen(static_cast<size_t>(mask.n)), found(static_cast<size_t>(mask.n));
      for (int64_t j = 0; j < mask.n; ++j) {
        for (int64_t i = r0; i <= r1; ++i)
          seen[static_cast<size_t>(j)] = seen[static_cast<size_t>(j)] || mask.valid(i, j);
      }
      for (const Span& span : visible.of(r0, r1)) {
        for (int64_t j = span.begin; j < span.end; ++j) found[static_cast<size_t>(j)] = true;
      }
      for (size_t j = 0; j < seen.size(); ++j)
        ASSERT_LE(seen[j], found[j]) << mask.text() << " rows " << r0 << "-" << r1;
      ++tiles;
      inexact += seen != found;
      if (r0 == r1) {
        ASSERT_EQ(seen, found) << mask.text() << " row " << r0;
      }
    }
  }
  EXPECT_EQ(inexact, 0) << "of " << tiles;
}

TEST(AttentionMask, WhatAnInstanceDoesNotUseIsFoldedAway) {
  EXPECT_LE(bound_mask(HstuAttentionParams(), 1000, 0).nodes().size(), 6U);
  const Expression full = bound_mask({.causal = false, .full_mask = true}, 1000, 0);
  EXPECT_LE(full.nodes().size(), 3U);
  // And nothing is left but the pair.
  ASSERT_EQ(full.symbols().size(), 2U);
  EXPECT_EQ(full.symbols()[0].name, "row");
  EXPECT_EQ(full.symbols()[1].name, "column");
}

}  // namespace
}  // namespace hstujit
