// The float64 reference, from docs/ops-sequences.md.
#include "compiler/spec/operators/dense_to_jagged/spec.h"
#include "compiler/spec/sequence_reference.h"

namespace hstujit {

void DenseToJaggedSpec::reference_rows(Direction direction, const Lengths& lengths,
                                       std::vector<HostValue>& values) const {
  SequenceReference call(*this, direction, values);
  const int64_t max_len = call.integer("max_len");
  call.resize("out", lengths.total_rows(), params_.width);
  int64_t row = 0;
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    for (int64_t i = 0; i < lengths.rows[b]; ++i, ++row) {
      const std::span<double> out = call.row("out", row);
      if (i < max_len)
        std::copy_n(call.row("dense", static_cast<int64_t>(b) * max_len + i).begin(), out.size(), out.begin());
    }
  }
}

HostValue DenseToJaggedSpec::make_integers(const Argument& argument, const Lengths& lengths, uint64_t) const {
  return argument.name == "max_len" ? uniform_rows(lengths) : batch_integers(argument, lengths);
}

const OperatorReference& reference_dense_to_jagged() { return sequence_reference<DenseToJaggedSpec>(); }

}  // namespace hstujit
