#include "templates/gemm/cost.h"

#include <algorithm>
#include <cmath>

namespace hstujit::gemm {

Extents extents_of(const GemmSpec& spec, const ProblemSize& size) {
  const GemmInterface& gemm = spec.interface();
  Extents extents;
  int64_t rows = spec.typical_rows();
  if (gemm.per_sequence()) {
    extents.products = size.batch;
    const double mean = std::round(static_cast<double>(size.max_seq_len) * size.mean_fill);
    rows = std::max<int64_t>(1, static_cast<int64_t>(mean));
  }
  extents.m = gemm.m == GemmInterface::kRows ? rows : gemm.m;
  extents.k = gemm.k == GemmInterface::kRows ? rows : gemm.k;
  const std::vector<int64_t> lengths(static_cast<size_t>(extents.products), rows);
  extents.bytes = spec.work(Direction::kForward, {lengths, {}, 0, {}}).bytes;
  return extents;
}

}  // namespace hstujit::gemm
