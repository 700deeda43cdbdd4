// The reference of row operators: drawn operands, and a function of each operator that computes one row.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/spec/reference.h"
#include "compiler/spec/row_spec.h"

namespace hstujit {

// One row of a call, in float64.
class ReferenceRow {
 public:
  virtual ~ReferenceRow() = default;
  virtual std::span<const double> input(std::string_view name) const = 0;  // of a row, a vector or all groups
  virtual double scalar(std::string_view name) const = 0;
  virtual int64_t number() const = 0;  // of the row, by which random numbers are drawn
  // A row's elements, or what the row adds to a column sum.
  virtual std::span<double> output(std::string_view name) = 0;
  // For each element of an output that is a difference of terms which may cancel: the sum of their sizes.
  virtual std::span<double> terms(std::string_view name) = 0;
};

// Offsets and counts of generated calls, as the lengths have them.
HostValue batch_integers(const Argument& argument, const Lengths& lengths);

// Draws the inputs of row operators.
class RowInputs : public OperatorReference {
 public:
  std::vector<HostValue> make_inputs(const OpSpec& op, Direction direction, const Lengths& lengths,
                                     uint64_t seed) const final;

 protected:
  ~RowInputs() = default;
  // Draws an integer or a tensor of integers.
  virtual HostValue make_integers(const OpSpec&, const Argument& argument, const Lengths& lengths,
                                  uint64_t /*seed*/) const {
    return batch_integers(argument, lengths);
  }
};

// Computes row after row.
class RowReference : public RowInputs {
 public:
  void compute(const OpSpec& op, Direction direction, const Lengths& lengths,
               std::vector<HostValue>& values) const final;
  std::vector<std::vector<double>> error_variances(const OpSpec& op, Direction direction,
                                                   const std::vector<HostValue>& inputs,
                                                   const std::vector<bool>& sequences) const final;

 protected:
  ~RowReference() = default;
  virtual void compute_row(const RowSpec& spec, Direction direction, ReferenceRow& row) const = 0;

 private:
  // Computes each row, some of them at the same time; column sums are those of the rows.
  void visit_rows(const RowSpec& spec, Direction direction, std::vector<HostValue>& values,
                  std::vector<std::vector<double>>* terms) const;
};

// The reference of an operator whose class has
//
//   void reference_row(Direction direction, ReferenceRow& row) const;
template <typename Spec>
const OperatorReference& row_reference() {
  class SpecReference final : public RowReference {
    void compute_row(const RowSpec& spec, Direction direction, ReferenceRow& row) const override {
      static_cast<const Spec&>(spec).reference_row(direction, row);
    }
  };
  static const SpecReference reference;
  return reference;
}

}  // namespace hstujit
