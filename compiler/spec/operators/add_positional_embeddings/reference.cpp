// The float64 reference, from docs/ops-sequences.md.
#include "compiler/spec/operators/add_positional_embeddings/spec.h"
#include "compiler/spec/sequence_reference.h"

namespace hstujit {

void AddPositionalEmbeddingsSpec::reference_rows(Direction direction, const Lengths& lengths,
                                                 std::vector<HostValue>& values) const {
  SequenceReference call(*this, direction, values);
  const bool forward = direction == Direction::kForward;
  const auto width = static_cast<size_t>(params_.width);
  const char* const table = forward ? "position_embeddings_weight" : "dposition_embeddings_weight";
  if (!forward) call.resize(table, generated_sizes(lengths).at("Kp"), params_.width);
  call.resize(forward ? "out" : "dseq_embeddings", lengths.total_rows(), params_.width);
  const int64_t positions = call.rows(table);
  const double alpha = call.real("alpha");
  int64_t row = 0;
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    const int64_t targets = params_.num_targets ? lengths.num_targets[b] : 0;
    const int64_t high = first_target(params_, lengths.rows[b], targets);
    for (int64_t i = 0; i < lengths.rows[b]; ++i, ++row) {
      const int64_t position = std::clamp<int64_t>(std::min(i, high), 0, positions - 1);
      const std::span<double> embedding = call.row(table, position);
      for (size_t c = 0; c < width; ++c) {
        if (forward) {
          call.row("out", row)[c] = alpha * call.row("seq_embeddings", row)[c] + embedding[c];
        } else {
          call.row("dseq_embeddings", row)[c] = alpha * call.row("dout", row)[c];
          embedding[c] += call.row("dout", row)[c];
        }
      }
    }
  }
}

const OperatorReference& reference_add_positional_embeddings() {
  return sequence_reference<AddPositionalEmbeddingsSpec>();
}

}  // namespace hstujit
