#include "compiler/spec/sequence_operator.h"

#include "compiler/spec/sequence_rows.h"

namespace hstujit {

HostValue uniform_rows(const Lengths& lengths) {
  const std::vector<int64_t>& rows = lengths.rows_of(kQueryAxis);
  return {{}, rows.empty() ? 0.0 : static_cast<double>(rows.front())};
}

}  // namespace hstujit
