// Common base of the row family's operators: each row of the outputs follows from that row of the inputs, and gradients
// of vectors are sums over all rows.
//
// An operator (compiler/spec/row_operator.h) says which operands it has; signature, bytes and bounds follow here, drawn
// inputs and the reference in row_reference.h, and the kernels from the IR (compiler/ir/row_builder.h).
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/fields_json.h"
#include "compiler/spec/op_spec.h"
#include "compiler/spec/row_interface.h"

namespace hstujit {

// The interfaces of a spec, of which a choice among configs asks thousands of times: made at the first use, by the
// thread that comes first. A copy of the spec makes its own.
class RowInterfaces {
 public:
  RowInterfaces() = default;
  RowInterfaces(const RowInterfaces&) : RowInterfaces() {}
  RowInterfaces& operator=(const RowInterfaces&) = delete;

  template <typename MakeForward>
  const RowInterface& get(Direction direction, MakeForward make_forward) const {
    std::call_once(made_, [&] {
      forward_ = make_forward();
      backward_ = backward_interface(forward_);
    });
    return direction == Direction::kForward ? forward_ : backward_;
  }

 private:
  mutable std::once_flag made_;
  mutable RowInterface forward_, backward_;
};

class ReferenceRow;  // row_reference.h

// The operands without those that share the argument of one before.
std::vector<RowOperand> arguments_of(const std::vector<RowOperand>& operands);
// The first axis of a tensor that has rows of its own.
Dimension axis_of(const RowOperand& operand, const RowInterface& interface);
// Rows of that axis in a batch, whose other axes have the `sizes` of OpSpec::generated_sizes; 1 of a vector.
int64_t lines_of(const RowOperand& operand, const RowInterface& interface, const Lengths& lengths,
                 const std::map<std::string, int64_t>& sizes);

class RowSpec : public OpSpec {
 public:
  Family family() const final { return Family::kRow; }
  bool supports(Direction) const override { return true; }

  // Forward, as the operator says it; backward, as it follows from that.
  const RowInterface& interface(Direction direction) const {
    return interfaces_.get(direction, [this] { return forward_interface(); });
  }
  // Bytes that the rows of tensors begin at multiples of.
  virtual int64_t alignment() const = 0;
  // Neighbouring elements that kernels take together: they are aligned, and of one group.
  int64_t elements_together() const;
  // The bytes of a vector: of as many elements as are loaded together.
  int64_t vector_alignment(DataType dtype) const;
  // Additions, multiplications and their like for each element, about.
  virtual double operations(Direction direction) const = 0;
  DataType dtype() const { return interface(Direction::kForward).outputs.front().dtype; }  // of rows
  bool has_vectors() const;  // of all rows or groups, among inputs

  // Rows of inputs, gradients of outputs, vectors, scalars, then the outputs.
  Signature signature(Direction direction) const override;
  Work work(Direction direction, const Lengths& lengths) const override;
  double error_bound(Direction direction) const override;

 protected:
  virtual RowInterface forward_interface() const = 0;

 private:
  RowInterfaces interfaces_;
};

// The fields that parameters of a row operator begin with, in this order:
//   width, dtype, weight_dtype, alignment
struct RowParams {
  static constexpr int64_t kMaxWidth = 16384;

  int64_t width = 0;
  DataType dtype = DataType::kBf16;
  DataType weight_dtype = DataType::kFp32;
  int64_t alignment = 16;

  bool operator==(const RowParams&) const = default;

  template <typename P>
  static constexpr auto fields_of() {
    return std::make_tuple(
        field("width", &P::width, "elements of a row", 1, kMaxWidth),
        field("dtype", &P::dtype, "data type of rows").one_of("bf16 fp16 fp32"),
        field("weight_dtype", &P::weight_dtype,
              "data type of weight and bias, and of their gradients: fp32 or that of rows")
            .one_of("bf16 fp16 fp32"),
        field("alignment", &P::alignment, "bytes that data pointers and strides are multiples of").one_of("2 4 8 16"));
  }
};

// Adds what breaks the rules between fields. Single fields are taken to be within their bounds.
void check_row_params(const RowParams& params, const std::string& path, Mistakes& mistakes);
// Whether weights of that type go with such rows; a mistake of "weight_dtype" where not.
bool check_weight_dtype(DataType weights, DataType rows, const std::string& path, Mistakes& mistakes);
// Brings equal meanings to one form: no alignment that rows which follow one another cannot have, and no type of
// weights where there are none.
void make_canonical(RowParams& params, bool has_vectors);

}  // namespace hstujit
