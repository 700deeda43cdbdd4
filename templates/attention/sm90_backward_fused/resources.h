// Resources of one CTA of the sm90_backward_fused skeleton: shared memory, threads, registers. The device struct
// `sm90::backward::FusedShared` has the same layout; the template asserts that it fits.
#pragma once

#include <cstdint>

#include "compiler/plan/attention_config.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "templates/common/sm90/machine.h"

namespace hstujit::sm90::backward {

// Whether consumer warps keep the sums of what the score reads in registers: those of few places, none of a table.
bool consumers_sum_sites(const AttentionSpec& spec);

struct FusedResources {
  FusedResources(const AttentionSpec& spec, const AttentionConfig& config);

  int64_t threads = 0;
  int64_t tail_box_rows = kTailBoxRows;
  int64_t roles = 1;               // of a tile
  int64_t qk_tiles = 0;            // 64-column tiles of q and k
  int64_t pv_tiles = 0;            // of v and dout
  int64_t stationary_stages = 0;   // buffers of the stationary tile of k and v
  int64_t schedule_sequences = 0;  // sequences that a list can sort
  bool last_tiles_first = false;   // "semaphore": the last tiles of all sequences come first
  bool pair_tiles = false;         // a work tile is a pair of tiles whose costs add up to a constant
  int64_t dq_columns = 0;          // columns of dq of each consumer warpgroup
  int64_t first_smem_accum_tile =
      0;                         // "per_sequence": Q tiles of a sequence before this one have one partial of dq each,
  int64_t smem_accum_tiles = 0;  // and as many from this one on have their sums in shared memory
  bool consumer_sites = false;   // consumer warps are the site warps
  bool bias_in_shared = false;   // a Q tile's bias comes to shared memory with it
  bool mask_first =
      false;  // the mask is looked at before the activation: with a bias that is not there, or factors of rows
  // Properties that the schedule and the producer of both directions ask for.
  bool long_tile_first = false;
  bool split = false;
  bool store_warp = false;  // a warp of its own stores what is done
  int64_t shared_bytes = 0;
  int64_t shared_bytes_resident = 0;  // of all CTAs of a multiprocessor, with what the system reserves for each
  int64_t producer_registers = 0;     // per thread, after setmaxnreg
  int64_t consumer_registers = 0;
  int64_t registers_needed = 0;  // estimate for a consumer thread

  // Fields that the source has as constants.
  static constexpr auto fields() {
    using R = FusedResources;
    return std::make_tuple(
        field("threads", &R::threads, ""), field("tail_box_rows", &R::tail_box_rows, ""),
        field("dq_columns", &R::dq_columns, ""), field("first_smem_accum_tile", &R::first_smem_accum_tile, ""),
        field("smem_accum_tiles", &R::smem_accum_tiles, ""), field("qk_tiles", &R::qk_tiles, ""),
        field("pv_tiles", &R::pv_tiles, ""), field("stationary_stages", &R::stationary_stages, ""),
        field("schedule_sequences", &R::schedule_sequences, ""), field("pair_tiles", &R::pair_tiles, ""),
        field("long_tile_first", &R::long_tile_first, ""), field("last_tiles_first", &R::last_tiles_first, ""),
        field("roles", &R::roles, ""), field("mask_first", &R::mask_first, ""), field("store_warp", &R::store_warp, ""),
        field("shared_bytes", &R::shared_bytes, ""), field("producer_registers", &R::producer_registers, ""),
        field("consumer_registers", &R::consumer_registers, ""), field("split", &R::split, ""));
  }
};

}  // namespace hstujit::sm90::backward
