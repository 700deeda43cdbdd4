// Checks on the results of an operator: drawn inputs, the float64 reference, variances of errors.
//
// reference.cpp in the folder of an operator defines reference_<op>, and CMake generates the table of them. Operators
// that are programs have none: theirs follows from the steps. libhstujit.so links no reference.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/spec/op_spec.h"

namespace hstujit {

// The functions are those of OpSpec. `spec` has the class that the reference was written for.
class OperatorReference {
 public:
  virtual std::vector<HostValue> make_inputs(const OpSpec& spec, Direction direction, const Lengths& lengths,
                                             uint64_t seed) const = 0;
  virtual void compute(const OpSpec& spec, Direction direction, const Lengths& lengths,
                       std::vector<HostValue>& values) const = 0;
  virtual std::vector<std::vector<double>> error_variances(const OpSpec&, Direction,
                                                           const std::vector<HostValue>& /*inputs*/,
                                                           const std::vector<bool>& /*sequences*/) const {
    return {};
  }

 protected:
  ~OperatorReference() = default;
};

struct ReferenceEntry {
  std::string_view op;
  const OperatorReference& (*reference)();  // reference_<op>
};
const std::vector<ReferenceEntry>& reference_table();

// The reference of a direction that is a program.
const OperatorReference& program_reference();

}  // namespace hstujit
