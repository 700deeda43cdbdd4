// The reference of operators over rows of sequences, and what it reads and writes: rows and integers of a call by name.
#pragma once

#include <cassert>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/spec/row_reference.h"

namespace hstujit {

class SequenceReference {
 public:
  SequenceReference(const OpSpec& spec, Direction direction, std::vector<HostValue>& values)
      : signature_(spec.signature(direction)), values_(values) {}

  // Resizes an output, and fills it with zeros.
  void resize(std::string_view output, int64_t rows, int64_t width) {
    HostTensor& tensor = value(output).tensor;
    tensor.shape = {rows, width};
    tensor.reals.assign(static_cast<size_t>(rows * width), 0);
  }
  std::span<double> row(std::string_view name, int64_t row) {
    HostTensor& tensor = value(name).tensor;
    const auto width = static_cast<size_t>(tensor.shape[1]);
    return std::span(tensor.reals).subspan(static_cast<size_t>(row) * width, width);
  }
  int64_t rows(std::string_view name) { return value(name).tensor.shape[0]; }
  int64_t element(std::string_view name, int64_t index) {
    return value(name).tensor.integers[static_cast<size_t>(index)];
  }
  int64_t integer(std::string_view name) { return static_cast<int64_t>(value(name).scalar); }
  double real(std::string_view name) { return value(name).scalar; }

 private:
  HostValue& value(std::string_view name) {
    const int index = find_argument(signature_, name);
    assert(index >= 0);
    return values_[static_cast<size_t>(index)];
  }

  const Signature signature_;
  std::vector<HostValue>& values_;
};

// The reference of an operator whose class has
//
//   void reference_rows(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const;
//
// and may have
//
//   HostValue make_integers(const Argument& argument, const Lengths& lengths, uint64_t seed) const;
//   std::vector<std::vector<double>> reference_variances(Direction direction, const std::vector<HostValue>& inputs,
//                                                        const std::vector<bool>& sequences) const;
template <typename Spec>
const OperatorReference& sequence_reference() {
  class SpecReference final : public RowInputs {
    void compute(const OpSpec& op, Direction direction, const Lengths& lengths,
                 std::vector<HostValue>& values) const override {
      static_cast<const Spec&>(op).reference_rows(direction, lengths, values);
    }
    // error_bound() alone counts: a sum of rows in a table is rounded like any other sum.
    std::vector<std::vector<double>> error_variances(const OpSpec& op, Direction direction,
                                                     const std::vector<HostValue>& inputs,
                                                     const std::vector<bool>& sequences) const override {
      if constexpr (requires { &Spec::reference_variances; })
        return static_cast<const Spec&>(op).reference_variances(direction, inputs, sequences);
      return {};
    }
    HostValue make_integers(const OpSpec& op, const Argument& argument, const Lengths& lengths,
                            uint64_t seed) const override {
      if constexpr (requires { &Spec::make_integers; })
        return static_cast<const Spec&>(op).make_integers(argument, lengths, seed);
      return batch_integers(argument, lengths);
    }
  };
  static const SpecReference reference;
  return reference;
}

}  // namespace hstujit
