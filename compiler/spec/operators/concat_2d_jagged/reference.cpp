// The float64 reference, from docs/ops-sequences.md.
#include "compiler/spec/operators/concat_2d_jagged/spec.h"
#include "compiler/spec/sequence_reference.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

void Concat2dJaggedSpec::reference_rows(Direction direction, const Lengths& lengths,
                                        std::vector<HostValue>& values) const {
  SequenceReference call(*this, direction, values);
  call.resize("out", lengths.total_rows(), params_.width);
  const int64_t prefix = params_.prefix ? call.integer("n_prefix_from_right") : 0;
  visit_sides(params_, lengths, prefix, [&](int64_t row, bool left, int64_t row_of_side) {
    const std::span<double> from = call.row(left ? "left" : "right", row_of_side);
    std::copy(from.begin(), from.end(), call.row("out", row).begin());
  });
}

HostValue Concat2dJaggedSpec::make_integers(const Argument& argument, const Lengths& lengths, uint64_t) const {
  const std::optional<HostValue> integer = JaggedSidesParams::make_integer(argument, lengths);
  return integer ? *integer : batch_integers(argument, lengths);
}

const OperatorReference& reference_concat_2d_jagged() { return sequence_reference<Concat2dJaggedSpec>(); }

}  // namespace hstujit
