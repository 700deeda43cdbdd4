// The operands of a row operator: which tensors, vectors, scalars and sums it has, and whose rows they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/op_spec.h"

namespace hstujit {

// Rows of a table whose gradient is a sum over the rows that found them, and rows that are gone through for it: kernels
// sort them by two digits of 11 bits, in 32-bit numbers.
inline constexpr int64_t kMaxTableRows = (int64_t{1} << 22) - 2;
inline constexpr int64_t kMaxSortedRows = (int64_t{1} << 32) - 2;

// The argument of RowInterface::has_row_numbers.
inline constexpr std::string_view kRowNumbers = "row_numbers";

// The gradient of an input's rows where they go around the operator.
inline constexpr std::string_view kResidualGradient = "dresidual";

enum class RowOperandKind {
  kRow,          // (L, width): each row has its own
  kVector,       // (width): all rows have the same
  kGroupVector,  // (groups): the same, one number for the elements of a group
  kScalar,       // a real argument of the launch
  kSeed,         // an integer argument of the launch, which random numbers follow from
  kSeedTensor,   // (1): such an integer, which is in the device's memory
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
  double missing = 0;              // what it is read as where `fill` is empty: 0, or -0, which adds nothing
  bool differentiated = true;      // false for an input whose gradient is the result's own
  bool gradient_in_place = false;  // of a row that is gone through: whether its gradient may be written over it
  // Whether the rows also go around the operator, to what comes behind it: backward takes the gradient that they have
  // there (kResidualGradient), and adds it. Of one input at most, and no business of the forward direction.
  bool residual = false;
  // The input, for the gradient of such a row.
  std::string in_place = {};

  bool is_found() const { return rows.has_value(); }
  bool is_seed() const { return kind == RowOperandKind::kSeed || kind == RowOperandKind::kSeedTensor; }
  bool has_elements() const { return kind != RowOperandKind::kScalar && !is_seed(); }
  bool is_group() const { return kind == RowOperandKind::kGroupVector || kind == RowOperandKind::kGroupSum; }
  bool is_table() const { return kind == RowOperandKind::kTable || kind == RowOperandKind::kTableSum; }
  // Whether its tensor has rows of its own: it is no vector, no sum over all rows and no number.
  bool is_matrix() const { return kind == RowOperandKind::kRow || is_table(); }
  // A sum over all rows.
  bool is_sum() const { return kind == RowOperandKind::kColumnSum || kind == RowOperandKind::kGroupSum; }

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
  // Arguments that the index reads besides scalars: integer tensors, offsets first, and integers. Its order is the
  // signature's.
  std::vector<Argument> integers;

  // The axes whose rows a sequence has together on the axis L (Argument::joined): where they are several.
  std::vector<Dimension> joined = {};

  // The axis of rows that are gone through.
  Dimension axis() const { return walked.size() == 1 ? walked.front() : Dimension::of(std::string(kSequenceAxis)); }
};

struct RowInterface {
  int64_t width = 0;
  std::vector<RowOperand> inputs, outputs;
  int64_t groups = 1;  // of width / groups neighbouring elements, which sums are over
  int64_t drawn = 0;   // random numbers for each element
  // Whether launches say by which number of a row random numbers are drawn, int64 (L): where not, by its place.
  bool has_row_numbers = false;
  std::optional<RowSequences> sequences = {};

  std::vector<RowOperand> inputs_of(RowOperandKind kind) const;
  std::vector<RowOperand> outputs_of(RowOperandKind kind) const;
  // The operand whose rows are gone through: the first that is no other's.
  const RowOperand& walked() const;
  // Elements of the last axis of an operand's tensor; 1 for a scalar.
  int64_t columns(const RowOperand& operand) const;
  // Elements that the operator sees of it: those of one row, of a vector, of the groups.
  int64_t elements(const RowOperand& operand) const;
};

// Interface of the backward direction: the inputs that gradients depend on, d<output> for each output, the gradient of
// a residual, and as outputs d<input> for each row, vector and table.
RowInterface backward_interface(const RowInterface& forward);

}  // namespace hstujit
