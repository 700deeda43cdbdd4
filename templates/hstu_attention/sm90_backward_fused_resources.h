// What one block of the sm90_backward_fused skeleton uses: shared memory, threads, registers. The device struct
// `sm90::backward::FusedShared` has the same layout; the template asserts that it fits.
#pragma once

#include <cstdint>

#include "compiler/plan/kernel_config.h"
#include "compiler/spec/hstu_attention/attention_spec.h"

namespace hstujit::sm90::backward {

struct FusedResources {
  FusedResources(const AttentionSpec& spec, const KernelConfig& config);

  int64_t threads = 0;
  int64_t qk_tiles = 0;            // 64-column tiles of q and k
  int64_t pv_tiles = 0;            // of v and dout
  int64_t kept_stages = 0;         // buffers of the tile of k and v that a block keeps
  int64_t schedule_sequences = 0;  // sequences that a list can sort
  bool tiles_by_place = false;     // "ordered": the last tiles of all sequences come first
  bool pair_tiles = false;         // an item is a pair of tiles whose costs add up to a constant
  int64_t part_columns = 0;        // columns of dq of each consumer warpgroup
  int64_t first_sum = 0;           // "whole": blocks of rows of a sequence before this one have one part of dq each,
  int64_t kept_sums = 0;           // and as many from this one on have their sums in shared memory
  bool mask_first = false;         // the mask is looked at before the activation, where it takes many registers
  int64_t shared_bytes = 0;
  int64_t shared_bytes_resident = 0;  // of all blocks of a multiprocessor, with what the system reserves for each
  int64_t producer_registers = 0;     // per thread, after setmaxnreg
  int64_t consumer_registers = 0;
  int64_t registers_needed = 0;  // estimate for a consumer thread
};

}  // namespace hstujit::sm90::backward
