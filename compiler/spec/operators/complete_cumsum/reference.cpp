// The reference, from docs/ops-serving.md.
#include "compiler/spec/operators/complete_cumsum/spec.h"

namespace hstujit {

void CompleteCumsumSpec::reference(Direction, const Lengths&, std::vector<HostValue>& values) const {
  const std::vector<int64_t>& lengths = values[0].tensor.integers;
  HostTensor& offsets = values[1].tensor;
  offsets.shape = {static_cast<int64_t>(lengths.size()) + 1};
  offsets.integers = {0};
  uint64_t sum = 0;
  for (const int64_t length : lengths) {
    sum += static_cast<uint64_t>(length);
    const auto wrapped = static_cast<int64_t>(sum);
    offsets.integers.push_back(params_.dtype == DataType::kInt32 ? static_cast<int32_t>(wrapped) : wrapped);
  }
}

}  // namespace hstujit
