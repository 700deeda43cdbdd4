// The float64 reference, from docs/ops-sequences.md.
#include "compiler/spec/operators/split_2d_jagged/spec.h"
#include "compiler/spec/sequence_reference.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

void Split2dJaggedSpec::reference_rows(Direction direction, const Lengths& lengths,
                                       std::vector<HostValue>& values) const {
  SequenceReference call(*this, direction, values);
  call.resize("left", lengths.total_rows(row_axis(params_.left())), params_.width);
  if (!params_.left_only) call.resize("right", lengths.total_rows(row_axis(params_.right())), params_.width);
  const int64_t prefix = params_.prefix ? call.integer("n_prefix_to_right") : 0;
  visit_sides(params_, lengths, prefix, [&](int64_t row, bool left, int64_t row_of_side) {
    if (!left && params_.left_only) return;
    const std::span<double> to = call.row(left ? "left" : "right", row_of_side);
    std::copy_n(call.row("values", row).begin(), to.size(), to.begin());
  });
}

HostValue Split2dJaggedSpec::make_integers(const Argument& argument, const Lengths& lengths, uint64_t) const {
  const std::optional<HostValue> integer = JaggedSidesParams::make_integer(argument, lengths);
  return integer ? *integer : batch_integers(argument, lengths);
}

const OperatorReference& reference_split_2d_jagged() { return sequence_reference<Split2dJaggedSpec>(); }

}  // namespace hstujit
