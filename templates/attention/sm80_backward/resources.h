// Resources of one CTA of the sm80_backward skeleton: shared memory, threads, registers, and the shapes that follow.
// The device struct `sm80::BackwardShared` has the same layout; the template asserts that its size is the same.
#pragma once

#include <cstdint>

#include "compiler/plan/attention_config.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm80 {

struct BackwardResources {
  // `config` must divide into warps of whole fragments: see well_formed().
  BackwardResources(const HstuAttentionParams& params, const AttentionConfig& config);

  int64_t threads = 0;
  int64_t warp_rows = 0;            // rows of the tile that a warp owns
  int64_t chunk_columns = 0;        // columns of a moving tile that are worked on at a time
  bool query_in_registers = false;  // and the other operands of the tile
  int64_t roles = 0;                // 2: CTAs for dq, and for dk and dv; 3: for each of them
  int64_t row_bytes = 0;            // of q and dout, or k and v, in shared memory: whole steps of a matrix instruction
  int64_t shared_bytes = 0;
  int64_t registers_needed = 0;  // estimate for a thread
  int64_t register_cap = 0;      // what blocks_per_sm leaves to a thread

  // Fields that the source has as constants.
  static constexpr auto fields() {
    using R = BackwardResources;
    return std::make_tuple(field("threads", &R::threads, ""), field("chunk_columns", &R::chunk_columns, ""),
                           field("query_in_registers", &R::query_in_registers, ""), field("roles", &R::roles, ""),
                           field("shared_bytes", &R::shared_bytes, ""));
  }
};

}  // namespace hstujit::sm80
