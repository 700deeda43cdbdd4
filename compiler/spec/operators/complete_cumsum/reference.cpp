// The reference, from docs/ops-serving.md.
#include "compiler/spec/reference.h"

#include "compiler/spec/operators/complete_cumsum/spec.h"
#include "compiler/spec/random.h"

namespace hstujit {

namespace {

class CumsumReference final : public OperatorReference {
  std::vector<HostValue> make_inputs(const OpSpec&, Direction, const Lengths& lengths, uint64_t seed) const override {
    // The sum of some thousands of them is more than an int32 holds.
    constexpr uint64_t kLongest = uint64_t{1} << 20;
    std::vector<HostValue> values(2);
    HostTensor& drawn = values[0].tensor;
    drawn.shape = {lengths.total_rows()};
    for (int64_t i = 0; i < drawn.shape[0]; ++i)
      drawn.integers.push_back(static_cast<int64_t>(random_bits(seed, 0, static_cast<uint64_t>(i)) % kLongest));
    return values;
  }

  void compute(const OpSpec& spec, Direction, const Lengths&, std::vector<HostValue>& values) const override {
    const bool narrow = static_cast<const CompleteCumsumSpec&>(spec).dtype() == DataType::kInt32;
    const std::vector<int64_t>& lengths = values[0].tensor.integers;
    HostTensor& offsets = values[1].tensor;
    offsets.shape = {static_cast<int64_t>(lengths.size()) + 1};
    offsets.integers = {0};
    uint64_t sum = 0;
    for (const int64_t length : lengths) {
      sum += static_cast<uint64_t>(length);
      const auto wrapped = static_cast<int64_t>(sum);
      offsets.integers.push_back(narrow ? static_cast<int32_t>(wrapped) : wrapped);
    }
  }
};

}  // namespace

const OperatorReference& reference_complete_cumsum() {
  static const CumsumReference reference;
  return reference;
}

}  // namespace hstujit
