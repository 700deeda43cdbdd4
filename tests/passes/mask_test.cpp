// The mask functions of every combination of flags, against hstu_attention_valid.
#include <gtest/gtest.h>

#include <random>

#include "compiler/ir/build.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/passes.h"
#include "tests/passes/attention_cases.h"
#include "tests/passes/evaluate.h"

namespace hstujit {
namespace {

constexpr int64_t kRows = 20;

// valid[i * n + j] of a sequence.
std::vector<char> valid_pairs(const HstuAttentionParams& params, int64_t n, int64_t t) {
  std::vector<char> valid(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) valid[static_cast<size_t>(i * n + j)] = hstu_attention_valid(params, i, j, n, t);
  }
  return valid;
}

TEST(Mask, EqualsSpecEverywhere) {
  for (const HstuAttentionParams& params : all_masks()) {
    Regions regions = build_regions(params);
    Evaluator<> mask(regions.function(kMaskValid));
    for (const int64_t n : {1, 2, 4, 7, 13}) {
      for (int64_t t = 0; t <= (params.num_targets ? n : 0); ++t) {
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n + 2; ++j) {
            const bool expected = j < n && hstu_attention_valid(params, i, j, n, t);
            ASSERT_EQ(mask.integers({i, j, n, t})[0] != 0, expected)
                << describe(params) << "; row " << i << ", column " << j << ", n " << n << ", t " << t;
          }
        }
      }
    }
  }
}

// Words that begin before, within and behind the sequence.
TEST(MaskBits, EqualMaskEverywhere) {
  for (const HstuAttentionParams& params : all_masks()) {
    Regions regions = build_regions(params);
    Evaluator<> mask(regions.function(kMaskValid)), row_bits(regions.function(kMaskRowBits)),
        column_bits(regions.function(kMaskColumnBits));
    for (const int64_t n : {1, 2, 7, 40}) {
      for (const int64_t t : {int64_t{0}, n / 3, n}) {
        if (t > 0 && !params.num_targets) continue;
        for (int64_t own = 0; own <= n; own += n > 7 ? 3 : 1) {
          for (const int64_t first : {int64_t{-33}, int64_t{-5}, int64_t{0}, int64_t{6}, n - 1, n + 3}) {
            const auto row = static_cast<uint32_t>(row_bits.integers({own, first, n, t})[0]);
            const auto column = static_cast<uint32_t>(column_bits.integers({own, first, n, t})[0]);
            for (int64_t i = 0; i < 32; ++i) {
              ASSERT_EQ(row >> i & 1, static_cast<uint32_t>(mask.integers({own, first + i, n, t})[0]))
                  << describe(params) << "; row " << own << ", column " << first + i << ", n " << n << ", t " << t;
              ASSERT_EQ(column >> i & 1, static_cast<uint32_t>(mask.integers({first + i, own, n, t})[0]))
                  << describe(params) << "; row " << first + i << ", column " << own << ", n " << n << ", t " << t;
            }
          }
        }
      }
    }
  }
}

TEST(Mask, TrivialOnlyWithoutMask) {
  for (const HstuAttentionParams& params : all_masks()) {
    Regions regions = build_regions(params);
    const bool plain = !params.causal && !params.num_targets && params.max_attn_len == 0 &&
                       params.contextual_seq_len == 0 && params.sla_k1 == 0 && params.sla_k2 == 0;
    EXPECT_EQ(mask_is_trivial(*regions.module), plain || params.full_mask) << describe(params);
  }
}

TEST(MaskTile, SoundAndMostlyExactOnSmallTiles) {
  std::mt19937 random(7);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int64_t tiles = 0, exact = 0;
  for (const HstuAttentionParams& params : all_masks()) {
    Regions regions = build_regions(params);
    Evaluator<> tile(regions.function(kMaskTile));
    for (int sequence = 0; sequence < 8; ++sequence) {
      const int64_t n = pick(1, kRows), t = params.num_targets ? pick(0, n) : 0;
      const std::vector<char> valid = valid_pairs(params, n, t);
      for (int k = 0; k < 30; ++k) {
        const int64_t r0 = pick(0, n - 1), r1 = pick(r0, n - 1), c0 = pick(0, n), c1 = pick(c0, n + 3);
        bool all = true, any = false;
        for (int64_t i = r0; i <= r1; ++i) {
          for (int64_t j = c0; j <= c1; ++j) {
            const bool pair = j < n && valid[static_cast<size_t>(i * n + j)] != 0;
            all = all && pair;
            any = any || pair;
          }
        }
        const auto result = tile.integers({r0, r1, c0, c1, n, t});
        ASSERT_TRUE(result[0] == 0 || all) << "full: " << describe(params) << "; rows " << r0 << " " << r1
                                           << ", columns " << c0 << " " << c1 << ", n " << n << ", t " << t;
        ASSERT_TRUE(result[1] != 0 || !any) << "visible: " << describe(params) << "; rows " << r0 << " " << r1
                                            << ", columns " << c0 << " " << c1 << ", n " << n << ", t " << t;
        ++tiles;
        exact += (result[0] != 0) == all && (result[1] != 0) == any;
      }
    }
  }
  EXPECT_GT(tiles, 50000);
  EXPECT_GT(static_cast<double>(exact) / static_cast<double>(tiles), 0.94) << exact << " of " << tiles;
}

// The features that kernels are fast with, one at a time and together, on aligned tiles: no tile may be classified
// worse than it is.
TEST(MaskTile, ExactOnAlignedTiles) {
  for (const HstuAttentionParams& params : all_masks()) {
    if (!params.causal || params.semi_local() || params.target_group_size > 1) continue;
    Regions regions = build_regions(params);
    Evaluator<> tile(regions.function(kMaskTile));
    for (const int64_t n : {8, 17, 40}) {
      for (int64_t t = 0; t <= (params.num_targets ? n / 2 : 0); ++t) {
        const std::vector<char> valid = valid_pairs(params, n, t);
        for (int64_t r0 = 0; r0 < n; r0 += 8) {
          for (int64_t c0 = 0; c0 < n; c0 += 8) {
            const int64_t r1 = std::min(r0 + 7, n - 1), c1 = c0 + 7;
            bool all = true, any = false;
            for (int64_t i = r0; i <= r1; ++i) {
              for (int64_t j = c0; j <= c1; ++j) {
                const bool pair = j < n && valid[static_cast<size_t>(i * n + j)] != 0;
                all = all && pair;
                any = any || pair;
              }
            }
            const auto result = tile.integers({r0, r1, c0, c1, n, t});
            EXPECT_EQ(result[0] != 0, all)
                << describe(params) << "; row " << r0 << ", column " << c0 << ", n " << n << ", t " << t;
            EXPECT_EQ(result[1] != 0, any)
                << describe(params) << "; row " << r0 << ", column " << c0 << ", n " << n << ", t " << t;
          }
        }
      }
    }
  }
}

struct Hull {
  int64_t lo, hi;  // [lo, hi), hi <= lo when empty
};

// Unknown coordinates with a valid pair among the known ones [first, last].
Hull true_hull(const std::vector<char>& valid, int64_t n, bool columns, int64_t first, int64_t last) {
  Hull hull{n, 0};
  for (int64_t known = first; known <= last; ++known) {
    for (int64_t unknown = 0; unknown < n; ++unknown) {
      const int64_t i = columns ? known : unknown, j = columns ? unknown : known;
      if (j >= n || valid[static_cast<size_t>(i * n + j)] == 0) continue;
      hull = {std::min(hull.lo, unknown), std::max(hull.hi, unknown + 1)};
    }
  }
  return hull;
}

TEST(MaskRanges, SoundAndTight) {
  std::mt19937 random(11);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int64_t ranges = 0, tight = 0;
  for (const HstuAttentionParams& params : all_masks()) {
    Regions regions = build_regions(params);
    Evaluator<> columns(regions.function(kMaskColumns)), rows(regions.function(kMaskRows));
    for (int sequence = 0; sequence < 8; ++sequence) {
      const int64_t n = pick(1, kRows), t = params.num_targets ? pick(0, n) : 0;
      const std::vector<char> valid = valid_pairs(params, n, t);
      for (int k = 0; k < 30; ++k) {
        const bool solve_columns = k % 2 == 0;
        const int64_t first = pick(0, n - 1), last = pick(first, n - 1);
        const Hull expected = true_hull(valid, n, solve_columns, first, last);
        const auto result = (solve_columns ? columns : rows).integers({first, last, n, t});
        const bool empty = expected.hi <= expected.lo;
        ASSERT_TRUE(empty || (result[0] <= expected.lo && result[1] >= expected.hi))
            << (solve_columns ? "columns: " : "rows: ") << describe(params) << "; " << first << " " << last << ", n "
            << n << ", t " << t << " gave [" << result[0] << ", " << result[1] << ") for [" << expected.lo << ", "
            << expected.hi << ")";
        ASSERT_GE(result[0], 0);
        ASSERT_LE(result[1], n);
        ++ranges;
        tight += empty ? result[1] <= result[0] : result[0] == expected.lo && result[1] == expected.hi;
      }
    }
  }
  EXPECT_GT(ranges, 50000);
  EXPECT_GT(static_cast<double>(tight) / static_cast<double>(ranges), 0.89) << tight << " of " << ranges;
}

// Nothing that a kernel computes from the regions leaves an int, for the longest sequence and the largest parameters.
TEST(MaskRanges, NoIntegerOverflows) {
  constexpr int64_t kMax = kMaxSeqLen, kPastTheEnd = 256;
  int instances = 0;
  for (const bool causal : {true, false}) {
    for (const int64_t context : {int64_t{0}, int64_t{1}, kMax}) {
      for (const int64_t group : {int64_t{0}, int64_t{1}, int64_t{3}, kMax}) {  // 0: no targets
        for (const auto& [window, full] : {std::pair<int64_t, int64_t>{0, 0}, {kMax - 1, 0}, {kMax - 1, kMax - 1}}) {
          for (const auto& [k1, k2] : {std::pair<int64_t, int64_t>{0, 0}, {kMax, 0}, {0, kMax}, {kMax, kMax}}) {
            HstuAttentionParams params = attention_params();
            params.causal = causal;
            params.contextual_seq_len = context;
            params.num_targets = group > 0;
            params.target_group_size = std::max<int64_t>(group, 1);
            params.max_attn_len = window;
            params.min_full_attn_seq_len = full;
            params.sla_k1 = k1;
            params.sla_k2 = k2;
            Mistakes mistakes;
            check_hstu_attention(params, "", mistakes);
            if (!mistakes.empty()) continue;
            make_canonical(params);
            ++instances;
            Regions regions = build_regions(params);
            Evaluator<> valid(regions.function(kMaskValid)), tile(regions.function(kMaskTile));
            Evaluator<> columns(regions.function(kMaskColumns)), rows(regions.function(kMaskRows));
            Evaluator<> row_bits(regions.function(kMaskRowBits)), column_bits(regions.function(kMaskColumnBits));
            for (const int64_t n : {int64_t{1}, kMax}) {
              for (const int64_t t : {int64_t{0}, int64_t{1}, n}) {
                for (const int64_t i : {int64_t{0}, n - 1, n + kPastTheEnd}) {
                  for (const int64_t j : {int64_t{0}, n - 1, n + kPastTheEnd}) {
                    valid.integers({i, j, n, t});
                    tile.integers({0, i, 0, j, n, t});
                    tile.integers({i, i, j, j, n, t});
                    columns.integers({std::min(i, j), std::max(i, j), n, t});
                    rows.integers({std::min(i, j), std::max(i, j), n, t});
                    // Words of a packed tile begin as far before a sequence.
                    for (const int64_t first : {j, -kMax - kPastTheEnd}) {
                      row_bits.integers({i, first, n, t});
                      column_bits.integers({i, first, n, t});
                    }
                  }
                }
              }
            }
            for (const Evaluator<>* evaluator : {&valid, &tile, &columns, &rows, &row_bits, &column_bits})
              ASSERT_LE(evaluator->largest_integer(), std::numeric_limits<int32_t>::max()) << describe(params);
          }
        }
      }
    }
  }
  EXPECT_GT(instances, 60);
}

// Causal, with or without targets and a window: the ranges are exact.
TEST(MaskRanges, ExactForCommonMasks) {
  for (const HstuAttentionParams& params : all_masks()) {
    if (!params.causal || params.semi_local() || params.contextual_seq_len > 0 || params.target_group_size > 1)
      continue;
    if (params.min_full_attn_seq_len > 0) continue;
    Regions regions = build_regions(params);
    Evaluator<> columns(regions.function(kMaskColumns));
    for (const int64_t n : {int64_t{1}, int64_t{9}, kRows}) {
      for (int64_t t = 0; t <= (params.num_targets ? n / 2 : 0); ++t) {
        const std::vector<char> valid = valid_pairs(params, n, t);
        for (int64_t first = 0; first < n; ++first) {
          for (int64_t last = first; last < n; ++last) {
            const Hull expected = true_hull(valid, n, true, first, last);
            const auto result = columns.integers({first, last, n, t});
            ASSERT_EQ(result[0], expected.lo)
                << describe(params) << "; rows " << first << " " << last << ", n " << n << ", t " << t;
            ASSERT_EQ(result[1], expected.hi)
                << describe(params) << "; rows " << first << " " << last << ", n " << n << ", t " << t;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
