#include "compiler/spec/operators/complete_cumsum/spec.h"

#include "compiler/spec/random.h"
#include "compiler/spec/read_params.h"

namespace hstujit {

OpSpecPtr parse_complete_cumsum(const Json& json, const std::string& path, Mistakes& mistakes) {
  const auto params = read_params<CompleteCumsumParams>(json, path, mistakes);
  return params ? std::make_shared<CompleteCumsumSpec>(*params) : nullptr;
}
Json schema_complete_cumsum() { return fields_schema<CompleteCumsumParams>(); }

Signature CompleteCumsumSpec::signature(Direction) const {
  Argument lengths;
  lengths.name = "lengths";
  lengths.dtype = params_.dtype;
  lengths.shape = {Dimension::of(std::string(kSequenceAxis))};
  lengths.alignment = static_cast<int>(size_of(params_.dtype));
  lengths.doc = "rows of each sequence";
  Argument offsets = lengths;
  offsets.name = "offsets";
  offsets.role = ArgumentRole::kOutput;
  offsets.shape = {Dimension::of(std::string(kSequenceAxis), 1)};
  offsets.doc = "first row of each sequence, then the number of rows";
  return {lengths, offsets};
}

Work CompleteCumsumSpec::work(Direction, const Lengths& lengths) const {
  const auto count = static_cast<double>(lengths.total_rows());
  return {count, (2 * count + 1) * static_cast<double>(size_of(params_.dtype))};
}

std::vector<HostValue> CompleteCumsumSpec::make_inputs(Direction, const Lengths& lengths, uint64_t seed) const {
  // The sum of some thousands of them is more than an int32 holds.
  constexpr uint64_t kLongest = uint64_t{1} << 20;
  std::vector<HostValue> values(2);
  HostTensor& drawn = values[0].tensor;
  drawn.shape = {lengths.total_rows()};
  for (int64_t i = 0; i < drawn.shape[0]; ++i)
    drawn.integers.push_back(static_cast<int64_t>(random_bits(seed, 0, static_cast<uint64_t>(i)) % kLongest));
  return values;
}

}  // namespace hstujit
