// The kinds of operands.
#include "compiler/spec/operators/hstu_attention/operands/operand.h"

#include "compiler/spec/op_spec.h"

namespace hstujit {

namespace {

using Axis = OperandAxis;
constexpr OperandKind kPair = {"pair", {Axis::kSequences, Axis::kHeads, Axis::kPositions, Axis::kPositions}, 4};
constexpr OperandKind kRow = {"row", {Axis::kRows, Axis::kHeads}, 2};
constexpr OperandKind kSequence = {"sequence", {Axis::kSequences}, 1};
constexpr OperandKind kIntervals = {"intervals", {Axis::kHeads, Axis::kEntries, Axis::kRows}, 3};
constexpr OperandKind kScalar = {"scalar", {Axis::kOne}, 1};
constexpr OperandKind kHead = {"head", {Axis::kHeads}, 1};
constexpr OperandKind kTable = {"table", {Axis::kEntries, Axis::kHeads}, 2};

// Rows of q have factors and masks.
bool is_of_queries(const Operand& operand) {
  return operand.use == OperandUse::kFactor || operand.use == OperandUse::kMask;
}

Dimension dimension_of(Axis axis, const Operand& operand, QueryRows rows) {
  switch (axis) {
    case Axis::kSequences:
      return Dimension::of("B");
    case Axis::kHeads:
      return Dimension::constant(operand.heads);
    case Axis::kRows:
      return is_of_queries(operand) ? query_rows(rows) : key_rows();
    case Axis::kPositions:
      return Dimension::scalar("max_seq_len");
    case Axis::kEntries:
      return Dimension::constant(operand.entries);
    case Axis::kOne:
      break;
  }
  return Dimension::constant(1);
}

int64_t size_of_axis(Axis axis, const Operand& operand, const OperandSizes& sizes) {
  switch (axis) {
    case Axis::kSequences:
      return sizes.sequences;
    case Axis::kHeads:
      return operand.heads;
    case Axis::kRows:
      return is_of_queries(operand) ? sizes.query_rows : sizes.rows;
    case Axis::kPositions:
      return sizes.max_seq_len;
    case Axis::kEntries:
      return operand.entries;
    case Axis::kOne:
      break;
  }
  return 1;
}

Argument tensor_argument(const Operand& operand, std::string name, ArgumentRole role, QueryRows rows,
                         std::string_view doc) {
  Argument argument;
  argument.name = std::move(name);
  argument.role = role;
  argument.dtype = operand.dtype;
  for (const Axis axis : operand.kind->axes(operand)) argument.shape.push_back(dimension_of(axis, operand, rows));
  argument.alignment = static_cast<int>(operand.alignment > 0 ? operand.alignment : size_of(operand.dtype));
  argument.doc = doc;
  const bool of_all_rows = operand.kind != &kPair && operand.kind != &kRow;
  argument.accumulated = role == ArgumentRole::kOutput && of_all_rows;
  if (operand.kind == &kSequence && operand.use == OperandUse::kMask) {
    argument.semantic = Semantic::kCounts;
    argument.axis = kSequenceAxis;
  }
  return argument;
}

}  // namespace

std::string Operand::gradient_name() const { return "d" + name; }
std::string Operand::member(std::string_view tensor) const {
  return (use == OperandUse::kScore ? "score_" : "") + std::string(tensor);
}
std::string Operand::before_name() const { return gradient_name() + "_before"; }
std::string Operand::slopes_struct() const { return "Slopes_" + name; }
bool Operand::has_slopes() const {
  return use == OperandUse::kScore && gradient && (kind == &kRow || kind == &kSequence || kind == &kPair);
}
bool Operand::has_sites() const { return use == OperandUse::kScore && gradient && !has_slopes(); }

bool Operand::varies_by_head(int64_t q_heads) const { return heads > (kind == &kPair && q_heads > 1 ? 1 : 0); }

const OperandKind& pair_kind() { return kPair; }
const OperandKind& row_kind() { return kRow; }
const OperandKind& sequence_kind() { return kSequence; }
const OperandKind& intervals_kind() { return kIntervals; }
const OperandKind& scalar_kind() { return kScalar; }
const OperandKind& head_kind() { return kHead; }
const OperandKind& table_kind() { return kTable; }

std::vector<OperandAxis> OperandKind::axes(const Operand& operand) const {
  std::vector<OperandAxis> axes;
  for (size_t i = 0; i < count; ++i) {
    if (all_axes[i] != Axis::kHeads || operand.heads > 0) axes.push_back(all_axes[i]);
  }
  return axes;
}

std::vector<std::string_view> OperandKind::strides(const Operand& operand) const {
  std::vector<std::string_view> strides;
  for (const OperandAxis axis : axes(operand)) {
    strides.push_back(axis == Axis::kSequences ? "batch_stride" : axis == Axis::kHeads ? "head_stride" : "row_stride");
  }
  strides.pop_back();
  return strides;
}

std::vector<int64_t> OperandKind::sizes(const Operand& operand, const OperandSizes& sizes) const {
  std::vector<int64_t> result;
  for (const OperandAxis axis : axes(operand)) result.push_back(size_of_axis(axis, operand, sizes));
  return result;
}

const Operand* find_operand(const std::vector<Operand>& operands, OperandUse use) {
  for (const Operand& operand : operands) {
    if (operand.use == use) return &operand;
  }
  return nullptr;
}

const Operand* find_read_rows(const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    if (operand.use == OperandUse::kScore && operand.by_score && operand.kind == &kRow) return &operand;
  }
  return nullptr;
}

const Operand* find_read_of_sequence(const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    const bool of_sequence = operand.kind == &kRow || operand.kind == &kSequence || operand.kind == &kPair;
    if (operand.use == OperandUse::kScore && of_sequence) return &operand;
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

// Counts, for an operand of pairs, the positions of each sequence: its rows of q by its rows of k.
double elements_read(const Operand& operand, const OperandSizes& sizes) {
  return operand.kind == &kPair ? static_cast<double>(operand.heads) * sizes.pairs : elements(operand, sizes);
}

}  // namespace hstujit
