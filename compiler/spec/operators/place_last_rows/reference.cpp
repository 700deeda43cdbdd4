// The float64 reference, from docs/ops-sequences.md.
#include "compiler/spec/operators/place_last_rows/spec.h"
#include "compiler/spec/sequence_reference.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

void PlaceLastRowsSpec::reference_rows(Direction direction, const Lengths& lengths,
                                       std::vector<HostValue>& values) const {
  SequenceReference call(*this, direction, values);
  const std::vector<int64_t>& last = lengths.rows_of(kQueryAxis);
  call.resize("out", lengths.total_rows(), params_.width);
  int64_t row = 0, end_of_last = 0;
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    end_of_last += last[b];
    for (int64_t behind = lengths.rows[b]; behind > 0; --behind, ++row) {
      if (behind > last[b]) continue;
      const std::span<double> out = call.row("out", row);
      std::copy_n(call.row("values", end_of_last - behind).begin(), out.size(), out.begin());
    }
  }
}

const OperatorReference& reference_place_last_rows() { return sequence_reference<PlaceLastRowsSpec>(); }

}  // namespace hstujit
