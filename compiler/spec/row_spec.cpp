#include "compiler/spec/row_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/spec/alignment.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

// Rows of an axis in a batch.
int64_t lines_on(const Dimension& axis, const Lengths& lengths, const std::map<std::string, int64_t>& sizes) {
  if (const auto size = sizes.find(axis.symbol); size != sizes.end()) return size->second;
  if (axis.symbol == "B" && !axis.is_uniform()) return static_cast<int64_t>(lengths.rows.size());
  return lengths.total_rows(row_axis(axis));
}

double bytes_of(const RowOperand& operand, int64_t lines, const RowInterface& interface) {
  if (!operand.has_elements()) return 0;
  return static_cast<double>(lines) * static_cast<double>(interface.elements(operand)) *
         static_cast<double>(size_of(operand.dtype));
}

}  // namespace

Dimension axis_of(const RowOperand& operand, const RowInterface& interface) {
  if (operand.rows) return *operand.rows;
  return interface.sequences ? interface.sequences->axis() : Dimension::of(std::string(kSequenceAxis));
}

int64_t lines_of(const RowOperand& operand, const RowInterface& interface, const Lengths& lengths,
                 const std::map<std::string, int64_t>& sizes) {
  return operand.is_matrix() ? lines_on(axis_of(operand, interface), lengths, sizes) : 1;
}

std::vector<RowOperand> arguments_of(const std::vector<RowOperand>& operands) {
  std::vector<RowOperand> arguments;
  for (const RowOperand& operand : operands) {
    const bool known = std::any_of(arguments.begin(), arguments.end(),
                                   [&](const RowOperand& before) { return before.argument() == operand.argument(); });
    if (!known) arguments.push_back(operand);
  }
  return arguments;
}

bool RowSpec::has_vectors() const {
  const std::vector<RowOperand>& inputs = interface(Direction::kForward).inputs;
  return std::any_of(inputs.begin(), inputs.end(), [](const RowOperand& input) {
    return input.kind == RowOperandKind::kVector || input.kind == RowOperandKind::kGroupVector;
  });
}

int64_t RowSpec::elements_together() const {
  const RowInterface& forward = interface(Direction::kForward);
  const int64_t group = forward.width / forward.groups;
  return std::min(alignment() / static_cast<int64_t>(size_of(dtype())), group & -group);
}

int64_t RowSpec::vector_alignment(DataType dtype) const {
  return std::min<int64_t>(16, elements_together() * static_cast<int64_t>(size_of(dtype)));
}

Signature RowSpec::signature(Direction direction) const {
  const RowInterface& interface = this->interface(direction);
  const auto argument = [&](const RowOperand& operand, ArgumentRole role) {
    Argument result;
    result.name = operand.argument();
    result.role = role;
    result.doc = operand.doc;
    if (operand.is_seed()) result.semantic = Semantic::kSeed;
    if (operand.kind == RowOperandKind::kSeedTensor) {
      result.dtype = DataType::kInt64;
      result.shape = {Dimension::constant(1)};
      result.alignment = static_cast<int>(size_of(result.dtype));
      return result;
    }
    if (!operand.has_elements()) {
      result.kind = operand.is_seed() ? ArgumentKind::kInt : ArgumentKind::kFloat;
      result.range = operand.range;
      return result;
    }
    const bool row = operand.kind == RowOperandKind::kRow;
    result.dtype = operand.dtype;
    if (operand.is_matrix()) {
      result.shape.push_back(axis_of(operand, interface));
      const bool joins = interface.sequences && result.shape[0] == Dimension::of(std::string(kSequenceAxis));
      if (joins) {
        for (const Dimension& axis : interface.sequences->joined)
          result.joined.push_back(axis.is_jagged() ? axis.offsets : axis.integer);
      }
    }
    result.shape.push_back(Dimension::constant(interface.columns(operand)));
    const auto element = static_cast<int64_t>(size_of(operand.dtype));
    result.accumulated = role == ArgumentRole::kOutput && !row;
    result.in_place = operand.in_place;
    const bool vector = operand.kind == RowOperandKind::kVector || operand.is_table();
    result.alignment = static_cast<int>(row ? alignment() : vector ? vector_alignment(operand.dtype) : element);
    return result;
  };
  Signature signature;
  for (const RowOperand& input : arguments_of(interface.inputs))
    signature.push_back(argument(input, ArgumentRole::kInput));
  if (interface.has_row_numbers) {
    Argument numbers;
    numbers.name = kRowNumbers;
    numbers.dtype = DataType::kInt64;
    numbers.shape = {axis_of(interface.walked(), interface)};
    numbers.alignment = static_cast<int>(size_of(numbers.dtype));
    numbers.semantic = Semantic::kSeed;
    numbers.doc = "number of each row, which decides what is drawn for it";
    signature.push_back(std::move(numbers));
  }
  if (interface.sequences) {
    for (const Argument& integer : interface.sequences->integers) signature.push_back(integer);
  }
  for (const RowOperand& output : arguments_of(interface.outputs))
    signature.push_back(argument(output, ArgumentRole::kOutput));
  return signature;
}

Work RowSpec::work(Direction direction, const Lengths& lengths) const {
  const RowInterface& interface = this->interface(direction);
  const int64_t rows = lengths.total_rows();
  Work work;
  work.flops = operations(direction) * static_cast<double>(rows) * static_cast<double>(interface.width);
  const auto sizes = generated_sizes(lengths);
  const int64_t walked = interface.sequences ? lines_on(interface.sequences->axis(), lengths, sizes) : rows;
  for (const std::vector<RowOperand>* operands : {&interface.inputs, &interface.outputs}) {
    for (const RowOperand& operand : *operands) {
      int64_t lines = lines_of(operand, interface, lengths, sizes);
      // Others are found by no row.
      if (operand.is_found() && operand.kind != RowOperandKind::kTableSum) lines = std::min(lines, walked);
      work.bytes += bytes_of(operand, lines, interface);
    }
  }
  if (interface.has_row_numbers) work.bytes += static_cast<double>(walked * sizeof(int64_t));
  if (!interface.sequences) return work;
  for (const Argument& integers : interface.sequences->integers) {
    if (integers.kind != ArgumentKind::kTensor) continue;
    const int64_t count =
        has_rows(integers) ? lengths.total_rows(row_axis(integers)) : static_cast<int64_t>(lengths.rows.size());
    work.bytes += static_cast<double>(count) * static_cast<double>(size_of(integers.dtype));
  }
  return work;
}

double RowSpec::error_bound(Direction direction) const {
  switch (dtype()) {
    case DataType::kFp32:
      return 1e-5;
    case DataType::kFp16:
      return 2e-3;
    default:
      return direction == Direction::kForward ? 6e-3 : 1e-2;
  }
}

void check_row_params(const RowParams& params, const std::string& path, Mistakes& mistakes) {
  check_alignment(params.alignment, params.dtype, path, mistakes);
  check_weight_dtype(params.weight_dtype, params.dtype, path, mistakes);
}

bool check_weight_dtype(DataType weights, DataType rows, const std::string& path, Mistakes& mistakes) {
  if (weights == DataType::kFp32 || weights == rows) return true;
  const std::string place = join_path(path, "weight_dtype");
  return mistakes.check(
      place, Status(Code::kInvalidConfig, fmt::format("{} is {}, but rows are {}; allowed: fp32, or the type of rows",
                                                      place, to_string(weights), to_string(rows))));
}

void make_canonical(RowParams& params, bool has_vectors) {
  params.alignment = std::min(params.alignment, row_alignment(params.width, params.dtype));
  if (!has_vectors) params.weight_dtype = RowParams().weight_dtype;
}

}  // namespace hstujit
