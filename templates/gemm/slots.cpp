#include "templates/gemm/slots.h"

#include <fmt/format.h>

#include "compiler/plan/device_types.h"
#include "compiler/support/integers.h"

namespace hstujit::gemm {

namespace {

constexpr int kLine = kLineBytes / 2;  // elements of 16 bits in a line of the swizzle

void add_tensor(const Signature& signature, const std::string& name, const std::string& member, const char* constant,
                std::vector<ParamSlot>& slots) {
  const Argument& argument = signature[static_cast<size_t>(find_argument(signature, name))];
  slots.push_back(argument_slot(signature, member, ParamSlot::Kind::kPointer, name));
  slots.back().type = fmt::format("{}{}*", constant, pointed_at(argument.dtype));
  const auto rank = static_cast<int>(argument.shape.size());
  if (rank == 1) return;
  slots.push_back(argument_slot(signature, member + "_stride", ParamSlot::Kind::kStride, name));
  slots.back().dimension = rank - 2;
  if (rank == 3) slots.push_back(argument_slot(signature, member + "_sequence_stride", ParamSlot::Kind::kStride, name));
}

}  // namespace

ParamSlot map_slot(const GemmSpec& spec, std::string name, const std::string& argument, int64_t box) {
  const Signature signature = spec.signature(Direction::kForward);
  ParamSlot result = argument_slot(signature, std::move(name), ParamSlot::Kind::kTensorMap, argument);
  const auto rank = static_cast<int>(signature[static_cast<size_t>(result.argument)].shape.size());
  result.map = {{{rank - 1, kLine}, {rank - 2, static_cast<int>(box)}}, kLineBytes};
  if (rank == 3) result.map.axes.push_back({0, 1});
  return result;
}

std::vector<ParamSlot> factor_slots(const GemmSpec& spec) {
  const Signature signature = spec.signature(Direction::kForward);
  std::vector<ParamSlot> slots;
  add_tensor(signature, spec.interface().a.name, "a", "const ", slots);
  add_tensor(signature, spec.interface().b.name, "b", "const ", slots);
  return slots;
}

std::vector<ParamSlot> operand_slots(const GemmSpec& spec, bool out_address) {
  const GemmInterface& gemm = spec.interface();
  const Signature signature = spec.signature(Direction::kForward);
  std::vector<ParamSlot> slots;
  for (const GemmOperand& operand : gemm.operands) {
    if (operand.kind == GemmOperandKind::kScalar) {
      slots.push_back(argument_slot(signature, operand.name, ParamSlot::Kind::kFloat, operand.name));
    } else {
      add_tensor(signature, operand.name, operand.name, "const ", slots);
    }
  }
  if (out_address) add_tensor(signature, "out", "out", "", slots);
  slots.push_back(argument_slot(signature, "rows", ParamSlot::Kind::kSize, "out"));
  slots.back().dimension = signature[static_cast<size_t>(find_argument(signature, "out"))].shape.size() == 3 ? 1 : 0;
  slots.push_back(argument_slot(signature, "depth", ParamSlot::Kind::kSize, gemm.a.name));
  slots.back().dimension = gemm.a.transposed ? 0 : 1;
  if (gemm.per_sequence()) {
    slots.push_back(argument_slot(signature, "seq_offsets", ParamSlot::Kind::kPointer, "seq_offsets"));
    slots.back().type = *gemm.offsets_dtype == DataType::kInt32 ? "const int*" : "const i64*";
    slots.push_back(argument_slot(signature, "sequences", ParamSlot::Kind::kSize, "seq_offsets"));
    slots.back().bias = -1;
  }
  if (gemm.column_sums) {
    add_tensor(signature, gemm.column_sums->name, "column_sums", "", slots);
    if (!gemm.column_sums->scale.empty())
      slots.push_back(argument_slot(signature, "column_scale", ParamSlot::Kind::kFloat, gemm.column_sums->scale));
  }
  return slots;
}

int64_t stage_depth(const GemmSpec& spec) { return kLineBytes / static_cast<int64_t>(size_of(spec.dtype())); }

std::vector<GridFactor> tile_grid(const GemmSpec& spec, int64_t rows, int64_t columns) {
  const GemmInterface& gemm = spec.interface();
  const Signature signature = spec.signature(Direction::kForward);
  const int64_t column_tiles = ceil_div(gemm.n, columns);
  const int out = find_argument(signature, "out");
  if (!gemm.per_sequence()) return {size_factor(out, rows), constant_factor(column_tiles)};
  const GridFactor sequences = size_factor(find_argument(signature, "seq_offsets"), 1, -1);
  if (gemm.sums_rows()) return {sequences, constant_factor(ceil_div(gemm.m, rows) * column_tiles)};
  return {sequences, size_factor(out, rows), constant_factor(column_tiles)};
}

void add_constants(const GemmSpec& spec, Constants& constants) {
  const GemmInterface& gemm = spec.interface();
  constants.emplace_back("columns", gemm.n);
  constants.emplace_back("a_transposed", gemm.a.transposed ? 1 : 0);
  constants.emplace_back("b_transposed", gemm.b.transposed ? 1 : 0);
  constants.emplace_back("sequences", gemm.per_sequence() ? 1 : 0);
  constants.emplace_back("sums_rows", gemm.sums_rows() ? 1 : 0);
  constants.emplace_back("depth", stage_depth(spec));
  constants.emplace_back("result_rows", gemm.sums_rows() ? gemm.m : 0);
  constants.emplace_back("column_sums", !gemm.column_sums ? 0 : gemm.column_sums->of_a ? 1 : 2);
  constants.emplace_back("column_scale", gemm.column_sums && !gemm.column_sums->scale.empty() ? 1 : 0);
  constants.emplace_back("a_alignment", spec.alignment_of(gemm.columns_of_a()));
  constants.emplace_back("b_alignment", spec.alignment_of(gemm.columns_of_b()));
  constants.emplace_back("out_alignment", spec.alignment_of(gemm.n));
}

}  // namespace hstujit::gemm
