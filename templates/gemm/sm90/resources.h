// Resources of a multiprocessor that a config takes: host side of shared.cuh and consumer.cuh.
#pragma once

#include "compiler/plan/gemm_config.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/gemm_spec.h"

namespace hstujit::gemm_sm90 {

inline constexpr int64_t kDepth = 64;                          // of a stage
inline constexpr int64_t kPieceRows = 16, kPieceColumns = 64;  // of what a warp stores at a time

struct Resources {
  Resources(const GemmSpec& spec, const GemmConfig& config);

  int64_t threads = 0;             // of a CTA, of which a multiprocessor has one
  int64_t shared_bytes = 0;        // of a CTA
  int64_t stage_bytes = 0;         // of it, those of the pipeline's stages
  int64_t partial_bytes = 0;       // that a part of a cluster's sum takes of these
  int64_t store_buffers = 0;       // of a warp, each for a piece on its way out; none where sums are split
  int64_t producer_registers = 0;  // of a thread
  int64_t consumer_registers = 0;
  int64_t registers_needed = 0;  // of a consumer thread, about

  // Fields that the generated source has.
  static constexpr auto fields() {
    using R = Resources;
    return std::make_tuple(field("shared_bytes", &R::shared_bytes, ""), field("store_buffers", &R::store_buffers, ""),
                           field("producer_registers", &R::producer_registers, ""),
                           field("consumer_registers", &R::consumer_registers, ""));
  }
};

// Rows of a tile that a consumer multiplies, in units of a wgmma; 0 where they are no whole number.
int64_t row_blocks(const GemmConfig& config);

// Pieces of a tile that each warp stores.
int64_t store_pieces(const GemmConfig& config);

}  // namespace hstujit::gemm_sm90
