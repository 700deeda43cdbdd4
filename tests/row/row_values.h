// Calls of a reference of the row family on values that a test writes down.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/spec/row_spec.h"

namespace hstujit {

using RowValues = std::map<std::string, std::vector<double>>;  // by argument

// All arguments, with what the reference makes of `rows` rows of these inputs. A scalar has one value, 0 where it has
// none.
inline std::vector<HostValue> reference_of(const RowSpec& spec, Direction direction, int64_t rows,
                                           const RowValues& inputs) {
  const Signature signature = spec.signature(direction);
  std::vector<HostValue> values(signature.size());
  for (size_t i = 0; i < signature.size(); ++i) {
    const auto input = inputs.find(signature[i].name);
    if (input == inputs.end()) continue;
    if (signature[i].kind != ArgumentKind::kTensor) {
      values[i].scalar = input->second.at(0);
      continue;
    }
    HostTensor& tensor = values[i].tensor;
    if (signature[i].shape.size() == 2) tensor.shape = {rows};
    tensor.shape.push_back(signature[i].shape.back().bias);
    tensor.reals = input->second;
    if (signature[i].dtype == DataType::kInt64) tensor.integers.assign(input->second.begin(), input->second.end());
  }
  spec.reference(direction, {{rows}, {}, rows, {}}, values);
  return values;
}

}  // namespace hstujit
