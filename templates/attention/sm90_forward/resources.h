// Resources of one CTA of the sm90_forward skeleton: shared memory, threads, registers. The device struct
// `sm90::Shared` has the same layout; the template asserts that it fits.
#pragma once

#include <cstdint>

#include "compiler/plan/attention_config.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "templates/common/sm90/machine.h"

namespace hstujit::sm90 {

// Split-KV: the clusters that share the columns of a tile.
constexpr int64_t kMaxSplits = 16;     // CTAs of the largest one that Hopper runs
constexpr int64_t kMinSplitTiles = 2;  // KV tiles that are worth a CTA of their own

struct Resources {
  Resources(const AttentionSpec& spec, const AttentionConfig& config);

  int64_t threads = 0;
  int64_t tail_box_rows = kTailBoxRows;
  int64_t qk_tiles = 0;            // 64-column tiles of q and k
  int64_t pv_tiles = 0;            // of v
  int64_t query_stages = 0;        // q buffers: two let the next tile's q arrive early
  int64_t schedule_sequences = 0;  // sequences the persistent schedule can sort
  bool pair_tiles = false;         // a work tile is a pair of row tiles whose costs add up to a constant
  bool long_tile_first = false;    // one row tile of a sequence is by far the longest, and goes before the others
  bool long_tile_is_last = false;  // it is the sequence's last one; else its first
  int64_t other_tile_columns = 0;  // that the others see, in the midst of a sequence
  bool partial_fits = false;       // a CTA's sums fit where its k and v were
  bool split = false;              // the columns of a tile may be split over a cluster of CTAs
  bool bias_ahead = false;         // a KV tile's bias is loaded while its product runs
  int64_t shared_bytes = 0;
  int64_t shared_bytes_resident = 0;  // of all CTAs of a multiprocessor, with what the system reserves for each
  int64_t producer_registers =
      0;  // per thread, after setmaxnreg; 0: the producer is one warp and setmaxnreg is not used
  int64_t consumer_registers = 0;
  int64_t registers_needed = 0;  // estimate for a consumer thread

  // Fields that the source has as constants.
  static constexpr auto fields() {
    using R = Resources;
    return std::make_tuple(
        field("threads", &R::threads, ""), field("tail_box_rows", &R::tail_box_rows, ""),
        field("qk_tiles", &R::qk_tiles, ""), field("pv_tiles", &R::pv_tiles, ""),
        field("query_stages", &R::query_stages, ""), field("schedule_sequences", &R::schedule_sequences, ""),
        field("pair_tiles", &R::pair_tiles, ""), field("long_tile_first", &R::long_tile_first, ""),
        field("long_tile_is_last", &R::long_tile_is_last, ""), field("other_tile_columns", &R::other_tile_columns, ""),
        field("bias_ahead", &R::bias_ahead, ""), field("shared_bytes", &R::shared_bytes, ""),
        field("producer_registers", &R::producer_registers, ""),
        field("consumer_registers", &R::consumer_registers, ""), field("split", &R::split, ""));
  }
};

}  // namespace hstujit::sm90
