// What one block of the sm90_backward skeleton uses: shared memory, threads, registers. The device struct
// `sm90::backward::Shared` has the same layout; the template asserts that it fits.
#pragma once

#include <cstdint>

#include "compiler/plan/kernel_config.h"
#include "compiler/spec/hstu_attention/attention_spec.h"

namespace hstujit::sm90::backward {

struct Resources {
  Resources(const AttentionSpec& spec, const KernelConfig& config);

  int64_t threads = 0;
  int64_t qk_tiles = 0;            // 64-column tiles of q and k
  int64_t pv_tiles = 0;            // of v and dout
  int64_t kept_stages = 0;         // buffers of the tile that a block keeps while others stream past it
  int64_t schedule_sequences = 0;  // sequences the persistent schedule can sort
  bool pair_tiles = false;         // an item is a pair of tiles whose costs add up to a constant
  int64_t shared_bytes = 0;
  int64_t shared_bytes_resident = 0;  // of all blocks of a multiprocessor, with what the system reserves for each
  int64_t producer_registers =
      0;  // per thread, after setmaxnreg; 0: the producer is one warp and setmaxnreg is not used
  int64_t consumer_registers = 0;
  int64_t registers_needed = 0;   // estimate for a consumer thread
  int64_t launch_registers = 0;   // per thread, before setmaxnreg: what the compiler has for a single product
  int64_t product_registers = 0;  // that the widest product takes
  bool split_columns = false;     // no registers hold the sums of both dk and dv: they are roles of their own
  // The products of a block are issued before the sums of the one before it: roles have what that takes, or not.
  bool overlap_rows = false;
  bool overlap_columns = false;
};

}  // namespace hstujit::sm90::backward
