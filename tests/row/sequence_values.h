// Calls of the references of operators over sequences, on values that a test writes down.
#pragma once

#include <string>
#include <vector>

#include "tests/row/row_values.h"

namespace hstujit {

// Output of the reference, for sequences of these lengths.
inline std::vector<double> sequences_output(const RowSpec& spec, Direction direction, const Lengths& lengths,
                                            const RowValues& inputs, const std::string& output) {
  const Signature signature = spec.signature(direction);
  std::vector<HostValue> values(signature.size());
  for (size_t i = 0; i < signature.size(); ++i) {
    const auto input = inputs.find(signature[i].name);
    if (input == inputs.end()) continue;
    const std::vector<double>& numbers = input->second;
    HostTensor& tensor = values[i].tensor;
    if (signature[i].kind != ArgumentKind::kTensor) {
      values[i].scalar = numbers.at(0);
    } else if (is_integer(signature[i].dtype)) {
      tensor.shape = {static_cast<int64_t>(numbers.size())};
      tensor.integers.assign(numbers.begin(), numbers.end());
    } else {
      const int64_t width = signature[i].shape.back().bias;
      tensor.shape = {static_cast<int64_t>(numbers.size()) / width, width};
      tensor.reals = numbers;
    }
  }
  spec.reference(direction, lengths, values);
  return values.at(static_cast<size_t>(find_argument(signature, output))).tensor.reals;
}

}  // namespace hstujit
