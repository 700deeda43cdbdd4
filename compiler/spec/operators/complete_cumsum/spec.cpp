#include "compiler/spec/operators/complete_cumsum/spec.h"

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

}  // namespace hstujit
