// Resources of one CTA of the sm90_backward_twopass skeleton: shared memory, threads, registers. The device struct
// `sm90::backward::Shared` has the same layout; the template asserts that it fits.
#pragma once

#include <cstdint>

#include "compiler/plan/attention_config.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "templates/common/sm90/machine.h"

namespace hstujit::sm90::backward {

struct Resources {
  Resources(const AttentionSpec& spec, const AttentionConfig& config);

  int64_t threads = 0;
  int64_t tail_box_rows = kTailBoxRows;
  int64_t roles = 2;               // of a tile
  int64_t qk_tiles = 0;            // 64-column tiles of q and k
  int64_t pv_tiles = 0;            // of v and dout
  int64_t stationary_stages = 0;   // buffers of the stationary tile
  int64_t schedule_sequences = 0;  // sequences the persistent schedule can sort
  bool pair_tiles = false;         // a work tile is a pair of tiles whose costs add up to a constant
  // Properties that the schedule and the producer of both directions ask for.
  bool long_tile_first = false;
  bool split = false;
  bool store_warp = false;  // a warp of its own stores what is done
  int64_t shared_bytes = 0;
  int64_t shared_bytes_resident = 0;  // of all CTAs of a multiprocessor, with what the system reserves for each
  int64_t producer_registers =
      0;  // per thread, after setmaxnreg; 0: the producer is one warp and setmaxnreg is not used
  int64_t consumer_registers = 0;
  int64_t registers_needed = 0;   // estimate for a consumer thread
  int64_t launch_registers = 0;   // per thread, before setmaxnreg: what the compiler has for a single product
  int64_t product_registers = 0;  // that the widest product takes
  bool split_columns = false;     // no registers hold the sums of both dk and dv: they are roles of their own
  // The products of a moving tile are issued before the sums of the one before it: roles have what that takes, or not.
  bool overlap_rows = false;
  bool overlap_columns = false;

  // Fields that the source has as constants.
  static constexpr auto fields() {
    using R = Resources;
    return std::make_tuple(
        field("threads", &R::threads, ""), field("tail_box_rows", &R::tail_box_rows, ""),
        field("qk_tiles", &R::qk_tiles, ""), field("pv_tiles", &R::pv_tiles, ""),
        field("stationary_stages", &R::stationary_stages, ""), field("schedule_sequences", &R::schedule_sequences, ""),
        field("pair_tiles", &R::pair_tiles, ""), field("long_tile_first", &R::long_tile_first, ""),
        field("roles", &R::roles, ""), field("store_warp", &R::store_warp, ""),
        field("shared_bytes", &R::shared_bytes, ""), field("producer_registers", &R::producer_registers, ""),
        field("consumer_registers", &R::consumer_registers, ""), field("overlap_rows", &R::overlap_rows, ""),
        field("overlap_columns", &R::overlap_columns, ""), field("split", &R::split, ""));
  }
};

}  // namespace hstujit::sm90::backward
