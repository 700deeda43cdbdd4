// Parameters and positions that both operators over positions have: where in its history a row is, by its targets.
#pragma once

#include <algorithm>

#include "compiler/spec/sequence_operator.h"

namespace hstujit {

struct PositionParams : SequenceParams {
  bool num_targets = false;
  bool interleave_targets = false;

  template <typename P>
  static constexpr auto fields_of() {
    return std::tuple_cat(
        SequenceParams::fields_of<P>(),
        std::make_tuple(
            field("weight_dtype", &P::weight_dtype, "data type of tables, and of their gradients: fp32 or that of rows")
                .one_of("bf16 fp16 fp32"),
            field("num_targets", &P::num_targets,
                  "launches take num_targets, how many targets each sequence ends with"),
            field("interleave_targets", &P::interleave_targets, "each target is two rows: an item and an action")));
  }
  static constexpr auto fields() { return fields_of<PositionParams>(); }

  void check(const std::string& path, Mistakes& mistakes) const;

  // Rows of a target.
  int64_t target_rows() const { return interleave_targets ? 2 : 1; }
};

// Operands that both have: rows, the table of positions, alpha, the result and the sequences.
RowInterface position_interface(const PositionParams& params);

// Rows of the table of positions in generated calls: one fewer than there are positions, where it may have so many, so
// that the last rows of the longest sequences share one.
inline int64_t generated_positions(const Lengths& lengths) {
  return std::clamp<int64_t>(lengths.max_seq_len - 1, 1, kMaxTableRows);
}

// Position of the first target: all rows from there on have the same.
inline int64_t first_target(const PositionParams& params, int64_t rows, int64_t targets) {
  return rows - params.target_rows() * (params.num_targets ? targets : 0);
}

}  // namespace hstujit
