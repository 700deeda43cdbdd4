// What the operators of the row family have in common: each row of the outputs follows from that row of the inputs, and
// gradients of vectors are sums over all rows.
//
// An operator (compiler/spec/row_operator.h) says which operands it has and writes its float64 reference for one row;
// signature, inputs, bytes and bounds follow here, and the kernels from the IR (compiler/ir/row_builder.h).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/fields_json.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

// Rows of a table whose gradient is a sum over the rows that found them, and rows that are gone through for it: kernels
// sort them by two digits of 11 bits, in 32-bit numbers.
inline constexpr int64_t kMaxTableRows = (int64_t{1} << 22) - 2;
inline constexpr int64_t kMaxSortedRows = (int64_t{1} << 32) - 2;

enum class RowOperandKind {
  kRow,          // (L, width): each row has its own
  kVector,       // (width): all rows have the same
  kGroupVector,  // (groups): the same, one number for the elements of a group
  kScalar,       // a real argument of the launch
  kSeed,         // an integer argument of the launch, which random numbers follow from
  kColumnSum,    // (width), an output: the sum over all rows, 0 where there is none
  kGroupSum,     // (groups), an output: the same, over the elements of a group, too
  kTable,        // (K, width): of its rows the one that the operator's index finds for the row
  kTableSum,     // (K, width), an output: each row is the sum over the rows that found it, 0 where none did
};

struct RowOperand {
  std::string name;
  RowOperandKind kind = RowOperandKind::kRow;
  DataType dtype = DataType::kFp32;
  std::string_view doc;
  double usual = 0;         // a scalar's value in generated calls; what a vector's elements vary around
  bool in_gradient = true;  // whether the gradients depend on it
  RealRange range = {};     // of a scalar
  // Rows may be columns of a wider tensor that they share with other operands: the argument's name, the operand's own
  // where it is empty, and where they begin in it.
  std::string tensor = {};
  int64_t first_column = 0;
  // The first axis of a tensor whose rows the operator's index finds: of a table, and of a row that is not the one gone
  // through. A row that the tensor does not have is read as `missing`, or as the scalar argument `fill`, and is not
  // written.
  // Of a table with a row for each sequence (B), a sequence's own is found.
  std::optional<Dimension> rows = {};
  std::string fill = {};
  double missing = 0;          // what it is read as where `fill` is empty: 0, or -0, which adds nothing
  bool differentiated = true;  // false for an input whose gradient is the result's own

  bool is_found() const { return rows.has_value(); }

  static RowOperand scalar(std::string name, std::string_view doc, double usual, RealRange range) {
    return {std::move(name), RowOperandKind::kScalar, DataType::kFp32, doc, usual, true, range};
  }
  const std::string& argument() const { return tensor.empty() ? name : tensor; }
};

// Rows that are those of sequences. An operator goes through the rows of all sequences, one sequence after the other.
struct RowSequences {
  // A sequence has as many as these jagged or uniform axes have together; the tensor's own axis is the first one where
  // it is the only one.
  std::vector<Dimension> walked;
  // What the index reads besides scalars: integer tensors, offsets first, and integers. Its order is the signature's.
  std::vector<Argument> integers;

  // The axis of rows that are gone through.
  Dimension axis() const { return walked.size() == 1 ? walked.front() : Dimension::of(std::string(kSequenceAxis)); }
};

struct RowInterface {
  int64_t width = 0;
  std::vector<RowOperand> inputs, outputs;
  int64_t groups = 1;  // of width / groups neighbouring elements, which sums are over
  int64_t drawn = 0;   // random numbers for each element
  std::optional<RowSequences> sequences = {};

  // Elements of the last axis of an operand's tensor; 1 for a scalar.
  int64_t columns(const RowOperand& operand) const;
  // Elements that the operator sees of it: those of one row, of a vector, of the groups.
  int64_t elements(const RowOperand& operand) const;
};

// Of one row of a call, in float64.
class ReferenceRow {
 public:
  virtual ~ReferenceRow() = default;
  virtual std::span<const double> input(std::string_view name) const = 0;  // of a row, a vector or all groups
  virtual double scalar(std::string_view name) const = 0;
  virtual int64_t number() const = 0;  // of the row, from 0
  // A row's elements, or what the row adds to a column sum.
  virtual std::span<double> output(std::string_view name) = 0;
  // For each element of an output that is a difference of terms which may cancel: the sum of their sizes.
  virtual std::span<double> terms(std::string_view name) = 0;
};

class RowSpec : public OpSpec {
 public:
  Family family() const final { return Family::kRow; }
  bool supports(Direction) const override { return true; }

  // Forward, as the operator says it. Backward: the inputs that the gradients depend on, d<output> for each output, and
  // as outputs d<input> for each row and vector.
  RowInterface interface(Direction direction) const;
  // Bytes that the rows of tensors begin at multiples of.
  virtual int64_t alignment() const = 0;
  // Neighbouring elements that kernels take together: they are aligned, and of one group.
  int64_t elements_together() const;
  // The bytes of a vector: of as many elements as are loaded together.
  int64_t vector_alignment(DataType dtype) const;
  // Additions, multiplications and their like for each element, about.
  virtual double operations(Direction direction) const = 0;
  DataType dtype() const { return forward_interface().outputs.front().dtype; }  // of rows
  bool has_vectors() const;                                                     // of all rows or groups, among inputs

  // Rows of inputs, gradients of outputs, vectors, scalars, then the outputs.
  Signature signature(Direction direction) const override;
  Work work(Direction direction, const Lengths& lengths) const override;
  std::vector<HostValue> make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const override;
  void reference(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const override;
  double error_bound(Direction direction) const override;
  std::vector<std::vector<double>> error_variances(Direction direction, const std::vector<HostValue>& inputs,
                                                   const std::vector<bool>& sequences) const override;

 protected:
  virtual RowInterface forward_interface() const = 0;
  virtual void reference_row(Direction direction, ReferenceRow& row) const = 0;
  // An integer or a tensor of integers for generated calls; here offsets and counts as the lengths have them.
  virtual HostValue make_integers(const Argument& argument, const Lengths& lengths, uint64_t seed) const;

 private:
  // Calls visit(row index, row) for each row, some of them at the same time; column sums are those of the rows.
  void visit_rows(Direction direction, std::vector<HostValue>& values, std::vector<std::vector<double>>* terms) const;
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
// Brings equal meanings to one form: no alignment that rows which follow one another cannot have, and no type of
// weights where there are none.
void make_canonical(RowParams& params, bool has_vectors);

}  // namespace hstujit
