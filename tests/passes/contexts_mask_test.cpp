// The mask functions of instances whose sequences have each their own number of contexts: the same as with that number
// for all of them.
#include <gtest/gtest.h>

#include <random>

#include "compiler/ir/build.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/passes.h"
#include "tests/passes/attention_cases.h"
#include "tests/passes/evaluate.h"

namespace hstujit {
namespace {

// Every mask with contexts that differs from the others in something else than their number.
std::vector<HstuAttentionParams> masks_of_contexts() {
  std::vector<HstuAttentionParams> masks;
  for (HstuAttentionParams params : all_masks()) {
    if (params.contextual_seq_len != 1) continue;
    params.contextual_seq_len = 0;
    params.num_contexts = true;
    masks.push_back(params);
  }
  return masks;
}

HstuAttentionParams with_the_same(HstuAttentionParams params, int64_t contexts) {
  params.num_contexts = false;
  params.contextual_seq_len = contexts;
  return params;
}

TEST(MaskOfContexts, EqualsThatOfAConstantEverywhere) {
  for (const HstuAttentionParams& params : masks_of_contexts()) {
    Regions regions = build_regions(params);
    Evaluator<> mask(regions.function(kMaskValid));
    for (const int64_t n : {1, 2, 4, 7, 13}) {
      for (int64_t t = 0; t <= (params.num_targets ? n : 0); t += n > 7 ? 3 : 1) {
        for (int64_t c = 0; c <= n; ++c) {
          const HstuAttentionParams same = with_the_same(params, c);
          for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < n + 2; ++j) {
              const bool expected = j < n && hstu_attention_valid(same, i, j, n, t);
              ASSERT_EQ(mask.integers({i, j, n, t, c})[0] != 0, expected)
                  << describe(params) << "; row " << i << ", column " << j << ", n " << n << ", t " << t << ", c " << c;
              if (j < n) {
                ASSERT_EQ(hstu_attention_valid(params, i, j, n, t, c), expected);
              }
            }
          }
        }
      }
    }
  }
}

// Words that begin before, within and behind the sequence.
TEST(MaskOfContexts, BitsEqualTheMask) {
  for (const HstuAttentionParams& params : masks_of_contexts()) {
    Regions regions = build_regions(params);
    ASSERT_TRUE(regions.function(kMaskRowBits) && regions.function(kMaskColumnBits)) << describe(params);
    Evaluator<> mask(regions.function(kMaskValid)), row_bits(regions.function(kMaskRowBits)),
        column_bits(regions.function(kMaskColumnBits));
    for (const int64_t n : {1, 7, 40}) {
      for (const int64_t t : {int64_t{0}, n / 3}) {
        if (t > 0 && !params.num_targets) continue;
        for (const int64_t c : {int64_t{0}, int64_t{1}, n / 2, n - t, n}) {
          for (int64_t own = 0; own <= n; own += n > 7 ? 3 : 1) {
            for (const int64_t first : {int64_t{-33}, int64_t{-5}, int64_t{0}, int64_t{6}, n - 1}) {
              const auto row = static_cast<uint32_t>(row_bits.integers({own, first, n, t, c})[0]);
              const auto column = static_cast<uint32_t>(column_bits.integers({own, first, n, t, c})[0]);
              for (int64_t i = 0; i < 32; ++i) {
                ASSERT_EQ(row >> i & 1, static_cast<uint32_t>(mask.integers({own, first + i, n, t, c})[0]))
                    << describe(params) << "; row " << own << ", column " << first + i << ", n " << n << ", t " << t
                    << ", c " << c;
                ASSERT_EQ(column >> i & 1, static_cast<uint32_t>(mask.integers({first + i, own, n, t, c})[0]))
                    << describe(params) << "; row " << first + i << ", column " << own << ", n " << n << ", t " << t
                    << ", c " << c;
              }
            }
          }
        }
      }
    }
  }
}

// Claims about tiles and the ranges of rows and columns hold, and ranges are seldom wider than they need be.
TEST(MaskOfContexts, TilesAndRangesAreSoundAndMostlyExact) {
  constexpr int64_t kRows = 20;
  std::mt19937 random(17);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int64_t tiles = 0, exact = 0, tight = 0;
  for (const HstuAttentionParams& params : masks_of_contexts()) {
    Regions regions = build_regions(params);
    Evaluator<> tile(regions.function(kMaskTile)), columns(regions.function(kMaskColumns)),
        rows(regions.function(kMaskRows));
    for (int sequence = 0; sequence < 240; ++sequence) {
      const int64_t n = pick(1, kRows), t = params.num_targets ? pick(0, n) : 0, c = pick(0, n);
      const int64_t r0 = pick(0, n - 1), r1 = pick(r0, n - 1), c0 = pick(0, n - 1), c1 = pick(c0, n - 1);
      bool all = true, any = false;
      int64_t low = n, high = 0, first = n, last = 0;  // columns that the rows see, rows that see the columns
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const bool valid = hstu_attention_valid(params, i, j, n, t, c);
          const bool in_rows = i >= r0 && i <= r1, in_columns = j >= c0 && j <= c1;
          if (in_rows && in_columns) all = all && valid, any = any || valid;
          if (in_rows && valid) low = std::min(low, j), high = std::max(high, j + 1);
          if (in_columns && valid) first = std::min(first, i), last = std::max(last, i + 1);
        }
      }
      const std::string text = describe(params) + "; n " + std::to_string(n) + ", t " + std::to_string(t) + ", c " +
                               std::to_string(c) + ", rows " + std::to_string(r0) + " " + std::to_string(r1) +
                               ", columns " + std::to_string(c0) + " " + std::to_string(c1);
      const auto kind = tile.integers({r0, r1, c0, c1, n, t, c});
      ASSERT_TRUE(kind[0] == 0 || all) << text;
      ASSERT_TRUE(kind[1] != 0 || !any) << text;
      const auto of_rows = columns.integers({r0, r1, n, t, c}), of_columns = rows.integers({c0, c1, n, t, c});
      ASSERT_TRUE(high <= low || (of_rows[0] <= low && of_rows[1] >= high)) << text;
      ASSERT_TRUE(last <= first || (of_columns[0] <= first && of_columns[1] >= last)) << text;
      for (const auto& range : {of_rows, of_columns}) ASSERT_TRUE(range[0] >= 0 && range[1] <= n) << text;
      ++tiles;
      exact += (kind[0] != 0) == all && (kind[1] != 0) == any;
      tight += high <= low ? of_rows[1] <= of_rows[0] : of_rows[0] == low && of_rows[1] == high;
    }
  }
  EXPECT_GT(tiles, 10000);
  EXPECT_GT(static_cast<double>(exact) / static_cast<double>(tiles), 0.94) << exact << " of " << tiles;
  EXPECT_GT(static_cast<double>(tight) / static_cast<double>(tiles), 0.85) << tight << " of " << tiles;
}

// Nothing that a kernel computes from the functions leaves an int, for the longest sequence and the largest parameters.
TEST(MaskOfContexts, NoIntegerOverflows) {
  constexpr int64_t kMax = kMaxSeqLen, kPastTheEnd = 256;
  for (HstuAttentionParams params : masks_of_contexts()) {
    if (params.max_attn_len > 0) params.max_attn_len = kMax - 1;
    if (params.min_full_attn_seq_len > 0) params.min_full_attn_seq_len = kMax - 1;
    if (params.target_group_size > 1) params.target_group_size = kMax;
    if (params.sla_k1 > 0) params.sla_k1 = kMax;
    if (params.sla_k2 > 0) params.sla_k2 = kMax;
    Mistakes mistakes;
    check_hstu_attention(params, "", mistakes);
    if (!mistakes.empty()) continue;
    make_canonical(params);
    Regions regions = build_regions(params);
    std::vector<Evaluator<>> of_pairs, of_tiles;
    for (const auto name : {kMaskValid, kMaskRowBits, kMaskColumnBits, kMaskColumns, kMaskRows})
      of_pairs.emplace_back(regions.function(name));
    of_tiles.emplace_back(regions.function(kMaskTile));
    for (const int64_t n : {int64_t{1}, kMax}) {
      for (const int64_t t : {int64_t{0}, n}) {
        for (const int64_t c : {int64_t{0}, int64_t{1}, n}) {
          for (const int64_t i : {int64_t{0}, n - 1, n + kPastTheEnd}) {
            for (const int64_t j : {i, n + kPastTheEnd}) {
              for (Evaluator<>& pair : of_pairs) pair.integers({i, j, n, t, c});
              of_tiles[0].integers({0, i, i, j, n, t, c});
            }
          }
          for (size_t word : {1, 2}) of_pairs[word].integers({n - 1, -kMax - kPastTheEnd, n, t, c});
        }
      }
    }
    for (const Evaluator<>& evaluator : of_pairs)
      ASSERT_LE(evaluator.largest_integer(), std::numeric_limits<int32_t>::max()) << describe(params);
    ASSERT_LE(of_tiles[0].largest_integer(), std::numeric_limits<int32_t>::max()) << describe(params);
  }
}

}  // namespace
}  // namespace hstujit
