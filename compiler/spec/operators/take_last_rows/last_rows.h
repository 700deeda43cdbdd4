// Axes, arguments and generated calls of take_last_rows and place_last_rows, which have the same.
#pragma once

#include "compiler/spec/operators/hstu_attention/query_rows.h"
#include "compiler/spec/sequence_arguments.h"
#include "compiler/spec/sequence_operator.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

// All rows of each sequence, and its last ones.
inline Dimension all_rows() { return key_rows(); }
inline Dimension last_rows() { return query_rows(QueryRows::kLastJagged); }

// Sequences of an operator that goes through the axis `walked`, with the offsets of both axes.
inline RowSequences last_row_sequences(const Dimension& walked, DataType offsets_dtype) {
  return {{walked},
          {offsets_argument("seq_offsets", offsets_dtype, kSequenceAxis),
           offsets_argument("seq_offsets_q", offsets_dtype, kQueryAxis,
                            "where the last rows of each sequence begin, then their number")}};
}

// Rows of a sequence in a generated call, among them sequences without last rows, and with all.
inline GeneratedRows generated_last_rows(int64_t sequence, int64_t drawn) {
  return {drawn, {{std::string(kQueryAxis), drawn * (sequence * 5 % 9) / 8}}};
}

}  // namespace hstujit
