// The float64 reference, from docs/ops-sequences.md.
#include "compiler/spec/operators/jagged_to_padded_dense/spec.h"
#include "compiler/spec/sequence_reference.h"

namespace hstujit {

void JaggedToPaddedDenseSpec::reference_rows(Direction direction, const Lengths& lengths,
                                             std::vector<HostValue>& values) const {
  SequenceReference call(*this, direction, values);
  const auto sequences = static_cast<int64_t>(lengths.rows.size());
  const int64_t max_len = call.integer("max_len");
  const double padding = params_.padding_value ? call.real("padding_value") : 0;
  call.resize("out", sequences * max_len, params_.width);
  int64_t first = 0;
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t rows = lengths.rows[static_cast<size_t>(b)];
    for (int64_t i = 0; i < max_len; ++i) {
      const std::span<double> out = call.row("out", b * max_len + i);
      if (i >= rows) {
        std::fill(out.begin(), out.end(), padding);
      } else {
        std::copy_n(call.row("values", first + i).begin(), out.size(), out.begin());
      }
    }
    first += rows;
  }
}

HostValue JaggedToPaddedDenseSpec::make_integers(const Argument& argument, const Lengths& lengths, uint64_t) const {
  return argument.name == "max_len" ? uniform_rows(lengths) : batch_integers(argument, lengths);
}

const OperatorReference& reference_jagged_to_padded_dense() { return sequence_reference<JaggedToPaddedDenseSpec>(); }

}  // namespace hstujit
