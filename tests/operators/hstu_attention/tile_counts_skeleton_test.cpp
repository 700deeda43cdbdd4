// KV tiles that cost models count, against the mask itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "compiler/spec/operators/hstu_attention/spec.h"
#include "templates/attention/host/mask_shape.h"
#include "templates/attention/host/tile_counts.h"

namespace hstujit {
namespace {

// Blocks with a valid pair, from the first visible column on.
std::vector<int64_t> blocks_of_mask(const HstuAttentionParams& params, const SequenceSize& sequence, int64_t block_m,
                                    int64_t block_n) {
  std::vector<int64_t> counts;
  for (int64_t row = 0; row < sequence.rows; row += block_m) {
    const auto visible = [&](int64_t column) {
      for (int64_t i = row; i < std::min(row + block_m, sequence.rows); ++i) {
        if (hstu_attention_valid(params, i, column, sequence.rows, sequence.targets)) return true;
      }
      return false;
    };
    int64_t blocks = 0, counted = -1;
    int64_t first = 0;
    while (first < sequence.rows && !visible(first)) ++first;
    for (int64_t column = first; column < sequence.rows; ++column) {
      const int64_t block = (column - first) / block_n;
      if (block == counted || !visible(column)) continue;
      ++blocks;
      counted = block;
    }
    counts.push_back(blocks);
  }
  return counts;
}

// Every mask without targets and with them, where the history holds all contextual rows.
void expect_counts_of_mask(HstuAttentionParams params) {
  for (const bool causal : {true, false}) {
    if (params.semi_local() && !causal) continue;
    params.causal = causal;
    for (const auto& [targets, group] : {std::pair<int64_t, int64_t>{0, 1}, {20, 1}, {20, 6}}) {
      params.num_targets = targets > 0;
      params.target_group_size = group;
      if (params.semi_local() && group > 1) continue;
      for (const int64_t rows : {52, 64, 129, 300}) {
        for (const auto& [m, n] : {std::pair<int64_t, int64_t>{64, 64}, {192, 64}, {128, 96}, {16, 8}}) {
          const SequenceSize sequence{rows, targets};
          EXPECT_EQ(count_kv_tiles(params, sequence, m, n), blocks_of_mask(params, sequence, m, n))
              << HstuAttentionSpec(params).to_json() << " rows " << rows << ", targets " << targets << ", " << m << "x"
              << n;
        }
      }
    }
  }
}

TEST(TileCounts, PlainMask) { expect_counts_of_mask({}); }
TEST(TileCounts, FullMask) {
  const HstuAttentionParams params{.causal = false, .full_mask = true};
  EXPECT_EQ(count_kv_tiles(params, {200, 0}, 64, 96), (std::vector<int64_t>{3, 3, 3, 3}));
}
TEST(TileCounts, Windows) {
  for (const int64_t window : {1, 20, 100, 400}) expect_counts_of_mask({.max_attn_len = window});
}
// docs/ops-attention.md: |d| <= w where the mask is not causal, so that a window ends on both sides.
TEST(TileCounts, AWindowEndsOnBothSidesWhenNotCausal) {
  HstuAttentionParams params;
  params.max_attn_len = 50;
  EXPECT_EQ(count_tiles(params, {1024, 0}, 64, 64).kv_tiles, 1 + 15 * 2) << "causal: [row - 50, row + 63]";
  params.causal = false;
  EXPECT_EQ(count_tiles(params, {1024, 0}, 64, 64).kv_tiles, 2 + 14 * 3 + 2) << "[row - 50, row + 63 + 50]";
  params.max_attn_len = 0;
  EXPECT_EQ(count_tiles(params, {1024, 0}, 64, 64).kv_tiles, 16 * 16);
}

TEST(TileCounts, FullTails) {
  for (const int64_t tail : {1, 16, 64, 400}) {
    expect_counts_of_mask({.max_attn_len = 40, .min_full_attn_seq_len = tail});
    expect_counts_of_mask({.max_attn_len = 40, .min_full_attn_seq_len = tail, .contextual_seq_len = 7});
  }
}
TEST(TileCounts, ContextualRows) {
  for (const int64_t context : {1, 5, 32}) {
    expect_counts_of_mask({.contextual_seq_len = context});
    expect_counts_of_mask({.max_attn_len = 40, .contextual_seq_len = context});
  }
}
TEST(TileCounts, SemiLocal) {
  for (const auto& [local, global] : {std::pair<int64_t, int64_t>{30, 10}, {30, 0}, {0, 40}}) {
    expect_counts_of_mask({.sla_k1 = local, .sla_k2 = global});
  }
}

// By hand: what makes context-1k and window-full-1k of bench/cliffs.json slow in a static list.
TEST(TileCounts, FirstAndLastTilesAreTheLongOnes) {
  const SequenceSize sequence{640, 0};
  EXPECT_EQ(count_kv_tiles({.contextual_seq_len = 32}, sequence, 128, 64), (std::vector<int64_t>{10, 4, 6, 8, 10}));
  EXPECT_EQ(count_kv_tiles({.max_attn_len = 128, .min_full_attn_seq_len = 64}, sequence, 128, 64),
            (std::vector<int64_t>{2, 4, 4, 4, 10}));
}

TEST(TileCounts, SumsAreThoseOfTheTiles) {
  const HstuAttentionParams params{.max_attn_len = 100, .contextual_seq_len = 32};
  const std::vector<int64_t> blocks = count_kv_tiles(params, {1000, 0}, 64, 64);
  const TileCounts counts = count_tiles(params, {1000, 0}, 64, 64);
  EXPECT_EQ(counts.row_tiles, static_cast<double>(blocks.size()));
  EXPECT_EQ(counts.kv_tiles, static_cast<double>(std::accumulate(blocks.begin(), blocks.end(), int64_t{0})));
}

// Sequences shorter than their contextual rows, and targets alone: no sense in them, but they are launched.
TEST(TileCounts, OddSequencesHaveNoNegativeCounts) {
  for (const int64_t rows : {1, 10, 40, 100}) {
    for (const int64_t targets : {int64_t{0}, rows / 2, rows}) {
      for (const int64_t window : {0, 16}) {
        const HstuAttentionParams params{
            .num_targets = true, .max_attn_len = window, .min_full_attn_seq_len = window * 4, .contextual_seq_len = 32};
        for (const int64_t blocks : count_kv_tiles(params, {rows, targets}, 64, 64)) {
          EXPECT_GE(blocks, 0);
          EXPECT_LE(blocks, 2);
        }
      }
    }
  }
}

TEST(TileCounts, TargetsAreAssumedWhereTheMaskHasThem) {
  EXPECT_EQ(assumed_sequence({}, 600).targets, 0);
  EXPECT_EQ(assumed_sequence({.num_targets = true}, 600).targets, 20);
  EXPECT_EQ(assumed_sequence({.num_targets = true}, 0.4).rows, 1);
  EXPECT_EQ(assumed_sequence({.num_targets = true}, 0.4).targets, 1);
}

// Where q has the last rows only, the tiles are those of these rows.
TEST(TileCounts, TilesBeginWithTheFirstRowOfQ) {
  HstuAttentionParams params;
  params.max_attn_len = 100;
  const auto all = count_kv_tiles(params, {1024, 0}, 64, 64);
  const auto last = count_kv_tiles(params, {1024, 0, 832}, 64, 64);
  ASSERT_EQ(last.size(), 3u);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), all.end() - 3));
  EXPECT_EQ(count_kv_tiles(params, {1024, 0, 1023}, 64, 64).size(), 1u);
}

TEST(TileCounts, LastRowsSeeWhatTheMaskSays) {
  for (const HstuAttentionParams& params :
       {HstuAttentionParams{}, HstuAttentionParams{.max_attn_len = 50},
        HstuAttentionParams{.causal = false, .max_attn_len = 50}, HstuAttentionParams{.sla_k1 = 30, .sla_k2 = 12},
        HstuAttentionParams{.num_targets = true, .max_attn_len = 20, .min_full_attn_seq_len = 8}}) {
    for (const int64_t rows_of_q : {1, 16, 64, 500}) {
      const SequenceSize sequence{300, params.num_targets ? 20 : 0};
      int64_t columns = 0;
      for (int64_t j = 0; j < sequence.rows; ++j) {
        bool seen = false;
        for (int64_t i = std::max<int64_t>(0, sequence.rows - rows_of_q); i < sequence.rows; ++i) {
          seen = seen || hstu_attention_valid(params, i, j, sequence.rows, sequence.targets);
        }
        columns += seen ? 1 : 0;
      }
      EXPECT_EQ(count_columns_of_last_rows(params, sequence, rows_of_q), columns)
          << HstuAttentionSpec(params).to_json() << " last " << rows_of_q;
    }
  }
}

TEST(MaskShape, TilesPairUpWhereEachRowSeesOneColumnMore) {
  EXPECT_TRUE(tiles_pair_up({}));
  EXPECT_TRUE(tiles_pair_up({.num_targets = true, .target_group_size = 3}));
  EXPECT_TRUE(tiles_pair_up({.num_targets = true, .contextual_seq_len = 32}));
  EXPECT_TRUE(tiles_pair_up({.contextual_seq_len = kMaxSeqLen}));
  EXPECT_FALSE(tiles_pair_up({.causal = false}));
  EXPECT_FALSE(tiles_pair_up({.causal = false, .full_mask = true}));
  for (const int64_t window : {int64_t{1}, int64_t{1000}, kMaxSeqLen}) {
    EXPECT_FALSE(tiles_pair_up({.max_attn_len = window}));
    EXPECT_FALSE(tiles_pair_up({.max_attn_len = window, .min_full_attn_seq_len = window, .contextual_seq_len = 5}));
    EXPECT_FALSE(tiles_pair_up({.sla_k1 = window}));
    EXPECT_FALSE(tiles_pair_up({.sla_k2 = window}));
  }
}

TEST(MaskShape, OneTileOfRowsSeesMoreThanTheOthers) {
  EXPECT_EQ(long_tile({.num_targets = true, .contextual_seq_len = 6}), LongTile::kNone);
  EXPECT_EQ(long_tile({.num_targets = true, .max_attn_len = 9}), LongTile::kNone);
  EXPECT_EQ(long_tile({.max_attn_len = 9, .contextual_seq_len = 6}), LongTile::kFirst);
  EXPECT_EQ(long_tile({.sla_k1 = 9, .sla_k2 = 3}), LongTile::kNone);
  EXPECT_EQ(long_tile({.num_targets = true, .sla_k1 = 9, .sla_k2 = 3}), LongTile::kLast);
  // Row i sees i - 8 to i, and 0 to 2.
  EXPECT_EQ(columns_of_rows({.sla_k1 = 9, .sla_k2 = 3}, 64), 64 + 8 + 3);
  EXPECT_EQ(columns_of_rows({.max_attn_len = 9, .contextual_seq_len = 6}, 1), 10);
}

// Tiles of consecutive sequences, from the first column that some of a tile's rows see to the last one.
TEST(TileCounts, OfPackedSequences) {
  HstuAttentionParams params, window, targets, all;
  window.max_attn_len = 40;
  targets.num_targets = true;
  all.full_mask = true;
  all.causal = false;
  const std::vector<SequenceSize> sequences = {{1}, {200}, {30, 7}, {63, 63}, {64, 20}, {5}};
  int64_t round = 0;
  for (const SequenceSize& sequence : sequences) round += sequence.rows;
  for (HstuAttentionParams mask : {params, window, targets, all}) {
    for (const int64_t block_n : {64, 128, 16}) {
      const PackedTileCounts counts = count_packed_kv_tiles(mask, sequences, 64, block_n);
      const auto rounds = counts.sequences / static_cast<int64_t>(sequences.size());
      ASSERT_GT(rounds, 1);
      std::vector<int64_t> expected;
      std::vector<std::pair<int64_t, size_t>> rows;  // where the row's sequence starts, and which it is
      for (int64_t i = 0; i < counts.sequences; ++i) {
        const size_t number = static_cast<size_t>(i) % sequences.size();
        rows.insert(rows.end(), static_cast<size_t>(sequences[number].rows), {std::ssize(rows), number});
      }
      ASSERT_EQ(std::ssize(rows), rounds * round);
      for (int64_t row0 = 0; row0 < std::ssize(rows); row0 += 64) {
        int64_t begin = std::ssize(rows), end = 0;
        for (int64_t row = row0; row < std::min(row0 + 64, std::ssize(rows)); ++row) {
          const auto& [start, number] = rows[static_cast<size_t>(row)];
          const SequenceSize& own = sequences[number];
          for (int64_t column = 0; column < own.rows; ++column) {
            const int64_t of = mask.num_targets ? own.targets : 0;
            if (!hstu_attention_valid(mask, row - start, column, own.rows, of)) continue;
            begin = std::min(begin, start + column);
            end = std::max(end, start + column + 1);
          }
        }
        expected.push_back((end - begin + block_n - 1) / block_n);
      }
      EXPECT_EQ(counts.kv_tiles, expected) << HstuAttentionSpec(mask).to_json() << " " << block_n;
    }
  }
}

}  // namespace
}  // namespace hstujit
