// The float64 reference, from docs/ops-sequences.md.
#include "compiler/spec/operators/take_last_rows/spec.h"
#include "compiler/spec/sequence_reference.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

void TakeLastRowsSpec::reference_rows(Direction direction, const Lengths& lengths,
                                      std::vector<HostValue>& values) const {
  SequenceReference call(*this, direction, values);
  const std::vector<int64_t>& last = lengths.rows_of(kQueryAxis);
  call.resize("out", lengths.total_rows(kQueryAxis), params_.width);
  int64_t end = 0, row = 0;
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    end += lengths.rows[b];
    for (int64_t i = last[b]; i > 0; --i, ++row) {
      if (i <= lengths.rows[b]) {
        const std::span<double> out = call.row("out", row);
        std::copy_n(call.row("values", end - i).begin(), out.size(), out.begin());
      }
    }
  }
}

const OperatorReference& reference_take_last_rows() { return sequence_reference<TakeLastRowsSpec>(); }

}  // namespace hstujit
