// The float64 reference, from docs/ops-sequences.md.
#include "compiler/spec/operators/jagged_dense_broadcast_add/spec.h"
#include "compiler/spec/sequence_reference.h"

namespace hstujit {

void JaggedDenseBroadcastAddSpec::reference_rows(Direction direction, const Lengths& lengths,
                                                 std::vector<HostValue>& values) const {
  SequenceReference call(*this, direction, values);
  const auto width = static_cast<size_t>(params_.width);
  const auto sequences = static_cast<int64_t>(lengths.rows.size());
  const bool forward = direction == Direction::kForward;
  call.resize(forward ? "out" : "ddense", forward ? lengths.total_rows() : sequences, params_.width);
  int64_t row = 0;
  for (int64_t b = 0; b < sequences; ++b) {
    for (int64_t i = 0; i < lengths.rows[static_cast<size_t>(b)]; ++i, ++row) {
      for (size_t c = 0; c < width; ++c) {
        if (forward) call.row("out", row)[c] = call.row("jagged", row)[c] + call.row("dense", b)[c];
        if (!forward) call.row("ddense", b)[c] += call.row("dout", row)[c];
      }
    }
  }
}

const OperatorReference& reference_jagged_dense_broadcast_add() {
  return sequence_reference<JaggedDenseBroadcastAddSpec>();
}

}  // namespace hstujit
