// The reference of gemm operators: the products in float64, and the epilogue of each operator.
#pragma once

#include <vector>

#include "compiler/spec/gemm_spec.h"
#include "compiler/spec/reference.h"

namespace hstujit {

class GemmReference : public OperatorReference {
 public:
  std::vector<HostValue> make_inputs(const OpSpec& op, Direction direction, const Lengths& lengths,
                                     uint64_t seed) const final;
  void compute(const OpSpec& op, Direction direction, const Lengths& lengths,
               std::vector<HostValue>& values) const final;
  std::vector<std::vector<double>> error_variances(const OpSpec& op, Direction direction,
                                                   const std::vector<HostValue>& inputs,
                                                   const std::vector<bool>& sequences) const final;

 protected:
  ~GemmReference() = default;
  // An element of the result in float64, of one of the product; `operands` in the order of the interface.
  virtual double epilogue(const GemmSpec& spec, double sum, int64_t column,
                          const std::vector<double>& operands) const = 0;
};

// The reference of an operator whose class has
//
//   double reference_epilogue(double sum, int64_t column, const std::vector<double>& operands) const;
template <typename Spec>
const OperatorReference& gemm_reference() {
  class SpecReference final : public GemmReference {
    double epilogue(const GemmSpec& spec, double sum, int64_t column,
                    const std::vector<double>& operands) const override {
      return static_cast<const Spec&>(spec).reference_epilogue(sum, column, operands);
    }
  };
  static const SpecReference reference;
  return reference;
}

}  // namespace hstujit
