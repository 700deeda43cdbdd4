// The kinds of operands.
#include "compiler/spec/operators/hstu_attention/operands/operand.h"

#include "compiler/spec/op_spec.h"

namespace hstujit {

namespace {

class PairKind final : public OperandKind {
 public:
  std::string_view name() const override { return "pair"; }
  std::vector<Dimension> shape(const Operand& operand, QueryRows) const override {
    const Dimension positions = Dimension::scalar("max_seq_len");
    return {Dimension::of("B"), Dimension::constant(operand.heads), positions, positions};
  }
  std::vector<std::string_view> strides(const Operand&) const override {
    return {"batch_stride", "head_stride", "row_stride"};
  }
  std::vector<int64_t> sizes(const Operand& operand, const OperandSizes& sizes) const override {
    return {sizes.sequences, operand.heads, sizes.max_seq_len, sizes.max_seq_len};
  }
  // The positions of each sequence, its rows of q by its rows of k.
  double elements_read(const Operand& operand, const OperandSizes& sizes) const override {
    return static_cast<double>(operand.heads) * sizes.pairs;
  }
};

class RowKind final : public OperandKind {
 public:
  std::string_view name() const override { return "row"; }
  std::vector<Dimension> shape(const Operand& operand, QueryRows rows) const override {
    std::vector<Dimension> shape = {operand.use == OperandUse::kFactor ? query_rows(rows) : key_rows()};
    if (operand.heads > 0) shape.push_back(Dimension::constant(operand.heads));
    return shape;
  }
  std::vector<std::string_view> strides(const Operand& operand) const override {
    return operand.heads > 0 ? std::vector<std::string_view>{"row_stride"} : std::vector<std::string_view>{};
  }
  std::vector<int64_t> sizes(const Operand& operand, const OperandSizes& sizes) const override {
    std::vector<int64_t> result = {operand.use == OperandUse::kFactor ? sizes.query_rows : sizes.rows};
    if (operand.heads > 0) result.push_back(operand.heads);
    return result;
  }
  double elements_read(const Operand& operand, const OperandSizes& sizes) const override {
    return elements(operand, sizes);
  }
};

class SequenceKind final : public OperandKind {
 public:
  std::string_view name() const override { return "sequence"; }
  std::vector<Dimension> shape(const Operand&, QueryRows) const override { return {Dimension::of("B")}; }
  std::vector<std::string_view> strides(const Operand&) const override { return {}; }
  std::vector<int64_t> sizes(const Operand&, const OperandSizes& sizes) const override { return {sizes.sequences}; }
  double elements_read(const Operand& operand, const OperandSizes& sizes) const override {
    return elements(operand, sizes);
  }
  void describe(Argument& argument) const override {
    argument.semantic = Semantic::kCounts;
    argument.axis = kSequenceAxis;
  }
};

class ScalarKind final : public OperandKind {
 public:
  std::string_view name() const override { return "scalar"; }
  std::vector<Dimension> shape(const Operand&, QueryRows) const override { return {Dimension::constant(1)}; }
  std::vector<std::string_view> strides(const Operand&) const override { return {}; }
  std::vector<int64_t> sizes(const Operand&, const OperandSizes&) const override { return {1}; }
  double elements_read(const Operand&, const OperandSizes&) const override { return 1; }
  void describe(Argument& argument) const override { argument.accumulated = argument.role == ArgumentRole::kOutput; }
};

Argument tensor_argument(const Operand& operand, std::string name, ArgumentRole role, QueryRows rows,
                         std::string_view doc) {
  Argument argument;
  argument.name = std::move(name);
  argument.role = role;
  argument.dtype = operand.dtype;
  argument.shape = operand.kind->shape(operand, rows);
  argument.alignment = static_cast<int>(operand.alignment > 0 ? operand.alignment : size_of(operand.dtype));
  argument.doc = doc;
  operand.kind->describe(argument);
  return argument;
}

}  // namespace

const OperandKind& pair_kind() {
  static const PairKind kind;
  return kind;
}
const OperandKind& row_kind() {
  static const RowKind kind;
  return kind;
}
const OperandKind& sequence_kind() {
  static const SequenceKind kind;
  return kind;
}
const OperandKind& scalar_kind() {
  static const ScalarKind kind;
  return kind;
}

const Operand* find_operand(const std::vector<Operand>& operands, OperandUse use) {
  for (const Operand& operand : operands) {
    if (operand.use == use) return &operand;
  }
  return nullptr;
}

Argument operand_argument(const Operand& operand, QueryRows rows) {
  return tensor_argument(operand, operand.name, ArgumentRole::kInput, rows, operand.doc);
}

Argument gradient_argument(const Operand& operand, QueryRows rows, bool adds) {
  Argument argument =
      tensor_argument(operand, operand.gradient_name(), ArgumentRole::kOutput, rows, operand.gradient_doc);
  if (adds) argument.in_place = operand.before_name();
  return argument;
}

Argument before_argument(const Operand& operand, QueryRows rows) {
  return tensor_argument(operand, operand.before_name(), ArgumentRole::kInput, rows, operand.before_doc);
}

double elements(const Operand& operand, const OperandSizes& sizes) {
  double product = 1;
  for (const int64_t size : operand.kind->sizes(operand, sizes)) product *= static_cast<double>(size);
  return product;
}

}  // namespace hstujit
