// Resources of one CTA of the sm80_forward skeleton: shared memory, threads, registers, and the shapes that follow. The
// device struct `sm80::Shared` has the same layout; the template asserts that its size is the same.
#pragma once

#include <cstdint>

#include "compiler/plan/attention_config.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm80 {

constexpr int64_t kStepBytes = 32;       // of an operand row, per matrix instruction
constexpr int64_t kFragmentColumns = 8;  // of an output, per matrix instruction

// Registers that a thread of so many, in so many resident CTAs of a multiprocessor, may have.
int64_t register_limit(int64_t threads, int64_t blocks);

struct Resources {
  // `config` must divide into warps of whole fragments: see well_formed().
  Resources(const HstuAttentionParams& params, const AttentionConfig& config);

  int64_t threads = 0;
  int64_t warp_rows = 0;      // rows of the tile that a warp owns
  int64_t chunk_columns = 0;  // columns of a KV tile that are worked on at a time
  bool query_in_registers = false;
  int64_t qk_row_bytes = 0;  // of q and k in shared memory: whole steps of a matrix instruction
  int64_t v_row_bytes = 0;
  int64_t shared_bytes = 0;
  int64_t registers_needed = 0;  // estimate for a thread
  int64_t register_cap = 0;      // what blocks_per_sm leaves to a thread

  // Fields that the source has as constants.
  static constexpr auto fields() {
    using R = Resources;
    return std::make_tuple(field("threads", &R::threads, ""), field("chunk_columns", &R::chunk_columns, ""),
                           field("query_in_registers", &R::query_in_registers, ""),
                           field("shared_bytes", &R::shared_bytes, ""));
  }
};

// fp32 data multiplied by fused multiply-adds, without tensor cores.
bool is_ieee(const HstuAttentionParams& params);

// Whether the tile divides into warps of 16 or 32 rows and KV tiles into chunks.
bool well_formed(const AttentionConfig& config);

}  // namespace hstujit::sm80
