// The two sides of concat_2d_jagged and of its inverse, split_2d_jagged: parameters, axes and order.
#pragma once

#include <functional>
#include <optional>

#include "compiler/spec/sequence_operator.h"

namespace hstujit {

struct JaggedSidesParams : SequenceParams {
  bool dense_left = false;
  bool dense_right = false;
  bool prefix = false;

  template <typename P>
  static constexpr auto fields_of() {
    return std::tuple_cat(
        SequenceParams::fields_of<P>(),
        std::make_tuple(
            field("dense_left", &P::dense_left, "the left side has max_len_left rows of every sequence"),
            field("dense_right", &P::dense_right, "the right side has max_len_right rows of every sequence"),
            field("prefix", &P::prefix, "launches say how many rows of the right side come before the left one")));
  }
  static constexpr auto fields() { return fields_of<JaggedSidesParams>(); }

  void check(const std::string& path, Mistakes& mistakes) const;

  Dimension left() const { return axis(dense_left, "Ll", "offsets_left", "max_len_left"); }
  Dimension right() const { return axis(dense_right, "Lr", "offsets_right", "max_len_right"); }
  // Arguments that say where the sides begin, and `prefix_argument`, the rows of the prefix.
  RowSequences sequences(const char* prefix_argument) const;

  // Rows in a generated call. A side that is dense has a quarter of the rows.
  GeneratedRows generated_rows(int64_t sequence, int64_t drawn, int64_t max_seq_len) const;
  // Null for an argument that is none of the sides'.
  static std::optional<HostValue> make_integer(const Argument& argument, const Lengths& lengths);

 private:
  static Dimension axis(bool dense, const char* symbol, const char* offsets, const char* integer) {
    return dense ? Dimension::uniform(integer) : Dimension::jagged(symbol, offsets);
  }
};

// Calls visit(row of both together, whether it is of the left side, its row there) in order.
void visit_sides(const JaggedSidesParams& params, const Lengths& lengths, int64_t prefix,
                 const std::function<void(int64_t row, bool left, int64_t row_of_side)>& visit);

}  // namespace hstujit
