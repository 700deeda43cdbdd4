// What the skeleton of the row family lets the tuner vary.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/spec/family.h"
#include "compiler/spec/fields.h"

namespace hstujit {

struct RowConfig {
  static constexpr Family kFamily = Family::kRow;
  static constexpr int64_t kMaxWarps = 32;  // of a block of 1024 threads
  static constexpr int64_t kMaxBlocks = 32;  // resident on a multiprocessor

  int64_t warps = 4;           // of a block
  int64_t warps_per_row = 1;   // those that share a row; the others of the block have rows of their own
  int64_t blocks_per_sm = 1;   // resident blocks the kernel is compiled for
  std::string activation = "mufu";  // how transcendental functions are computed: "mufu", "accurate"

  bool operator==(const RowConfig&) const = default;

  static constexpr auto fields() {
    using C = RowConfig;
    return std::make_tuple(field("warps", &C::warps, "warps of a block", 1, kMaxWarps),
                           field("warps_per_row", &C::warps_per_row, "warps that share a row", 1, kMaxWarps),
                           field("blocks_per_sm", &C::blocks_per_sm, "resident blocks", 1, kMaxBlocks),
                           field("activation", &C::activation, "arithmetic of functions").one_of("mufu accurate"));
  }
};

}  // namespace hstujit
