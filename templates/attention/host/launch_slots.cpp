#include "templates/attention/host/launch_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "compiler/plan/device_types.h"

namespace hstujit {

namespace {

// Type that `tensor` points at on the device.
std::string pointer_type(const Argument& tensor) {
  const std::string type = fmt::format("{}*", pointed_at(tensor.dtype));
  return tensor.role == ArgumentRole::kOutput ? type : "const " + type;
}

// Pointer and strides of the operand, its gradient or what that is added to, which is the argument `tensor`.
std::vector<ParamSlot> operand_slots(const Signature& signature, const Operand& operand, const std::string& tensor) {
  const std::string member = operand.member(tensor);
  std::vector<ParamSlot> slots = {argument_slot(signature, member, ParamSlot::Kind::kPointer, tensor)};
  slots[0].type = pointer_type(signature[static_cast<size_t>(slots[0].argument)]);
  int dimension = 0;
  for (const std::string_view name : operand.kind->strides(operand)) {
    slots.push_back(argument_slot(signature, fmt::format("{}_{}", member, name), ParamSlot::Kind::kStride, tensor));
    slots.back().dimension = dimension++;
  }
  return slots;
}

// The argument that bounds the rows of q of a sequence.
int max_query_rows(const AttentionSpec& spec, const Signature& signature) {
  return find_argument(signature, spec.query_rows() == QueryRows::kAll ? "max_seq_len" : "max_delta_len");
}

}  // namespace

std::vector<ParamSlot> attention_tensor_slots(const Signature& signature, const std::string& tensor, std::string type) {
  std::vector<ParamSlot> slots = {argument_slot(signature, tensor, ParamSlot::Kind::kPointer, tensor),
                                  argument_slot(signature, tensor + "_row_stride", ParamSlot::Kind::kStride, tensor),
                                  argument_slot(signature, tensor + "_head_stride", ParamSlot::Kind::kStride, tensor)};
  slots[0].type = std::move(type);
  slots[2].dimension = 1;
  return slots;
}

ParamSlot attention_map_slot(const Signature& signature, std::string name, std::string_view tensor, int64_t rows) {
  ParamSlot result = argument_slot(signature, std::move(name), ParamSlot::Kind::kTensorMap, tensor);
  // (columns, heads, rows): 64 elements of 2 bytes are one line of the swizzle.
  result.map = {{{2, 64}, {1, 1}, {0, static_cast<int>(rows)}}, 128};
  return result;
}

std::vector<ParamSlot> attention_common_slots(const AttentionSpec& spec, Direction direction) {
  using Kind = ParamSlot::Kind;
  const Signature signature = spec.signature(direction);
  const auto& params = spec.params();
  const std::string data = fmt::format("{}*", pointed_at(params.dtype));
  const std::string offset = params.offsets_dtype == DataType::kInt32 ? "const int*" : "const i64*";

  std::vector<ParamSlot> slots;
  const auto add = [&](std::vector<ParamSlot> members) {
    for (ParamSlot& member : members) slots.push_back(std::move(member));
  };
  const auto is_gradient = [&](const Argument& argument) {
    return std::ranges::any_of(spec.operands(),
                               [&](const Operand& operand) { return argument.name == operand.gradient_name(); });
  };
  for (const Argument& argument : signature) {
    if (argument.role == ArgumentRole::kOutput && !is_gradient(argument))
      add(attention_tensor_slots(signature, argument.name, data));
  }
  const auto add_max_seq_len = [&] {
    if (std::ranges::find(slots, "max_seq_len", &ParamSlot::name) == slots.end())
      slots.push_back(argument_slot(signature, "max_seq_len", Kind::kInt, "max_seq_len"));
  };
  const auto add_where_there = [&](const Operand& operand, const std::string& tensor) {
    if (find_argument(signature, tensor) >= 0) add(operand_slots(signature, operand, tensor));
  };
  for (const Operand& operand : spec.operands()) add_where_there(operand, operand.gradient_name());
  for (const Operand& operand : spec.operands()) add_where_there(operand, operand.before_name());
  for (const Operand& operand : spec.operands()) {
    if (operand.use == OperandUse::kMask) continue;
    add(operand_slots(signature, operand, operand.name));
    if (operand.kind == &pair_kind()) add_max_seq_len();
  }
  // Backward has tiles of all rows of k.
  if (direction == Direction::kBackward && spec.query_rows() != QueryRows::kAll) add_max_seq_len();
  slots.push_back(argument_slot(signature, "seq_offsets", Kind::kPointer, "seq_offsets"));
  slots.back().type = offset;
  if (spec.query_rows() == QueryRows::kLastJagged) {
    slots.push_back(argument_slot(signature, "seq_offsets_q", Kind::kPointer, "seq_offsets_q"));
    slots.back().type = offset;
  }
  for (const Operand& operand : spec.operands()) {
    if (operand.use == OperandUse::kMask) add(operand_slots(signature, operand, operand.name));
  }
  slots.push_back(argument_slot(signature, "total_rows", Kind::kSize, "k"));
  if (spec.query_rows() != QueryRows::kAll)
    slots.push_back(argument_slot(signature, "total_query_rows", Kind::kSize, "q"));
  slots.push_back(argument_slot(signature, "batch", Kind::kSize, "seq_offsets"));
  slots.back().bias = -1;
  slots.push_back(argument_slot(signature, "max_query_rows", Kind::kInt, ""));
  slots.back().argument = max_query_rows(spec, signature);
  for (const Argument& argument : signature) {
    if (argument.kind == ArgumentKind::kFloat)
      slots.push_back(argument_slot(signature, argument.name, Kind::kFloat, argument.name));
  }
  if (params.attn_seed_tensor) {
    slots.push_back(argument_slot(signature, "seed_tensor", Kind::kPointer, "seed_tensor", "const i64*"));
  } else if (params.attn_dropout) {
    slots.push_back(argument_slot(signature, "seed", Kind::kLong, "seed"));
  }
  if (params.attn_dropout) slots.push_back(argument_slot(signature, "offset", Kind::kLong, "offset"));
  slots.push_back(argument_slot(signature, "inverse_scale", Kind::kInverse, "scaling_seqlen"));
  slots.back().fallback = find_argument(signature, "max_seq_len");
  return slots;
}

GridFactor size_factor(const Signature& signature, std::string_view tensor, int64_t divisor, int64_t bias) {
  return size_factor(find_argument(signature, tensor), divisor, bias);
}

GridFactor batch_factor(const Signature& signature) { return size_factor(signature, "seq_offsets", 1, -1); }

std::vector<GridFactor> attention_grid(const AttentionSpec& spec, int64_t block_m, Direction direction) {
  const Signature signature = spec.signature(direction);
  const int rows =
      direction == Direction::kForward ? max_query_rows(spec, signature) : find_argument(signature, "max_seq_len");
  return {scalar_factor(rows, block_m), constant_factor(spec.params().heads), batch_factor(signature)};
}

std::vector<GridFactor> sequence_grid(const AttentionSpec& spec, Direction direction) {
  return {constant_factor(spec.params().heads), batch_factor(spec.signature(direction))};
}

std::vector<GridFactor> packed_attention_grid(const AttentionSpec& spec, int64_t block_m, Direction direction) {
  const Signature signature = spec.signature(direction);
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  return {size_factor(signature, "q", block_m), constant_factor(spec.params().heads),
          size_factor(signature, "seq_offsets", kAll, -1)};
}

Constants attention_constants(const AttentionSpec& spec) {
  const bool delta = spec.query_rows() != QueryRows::kAll, jagged = spec.query_rows() == QueryRows::kLastJagged;
  const HstuAttentionParams& params = spec.params();
  const bool even = params.has_bias() && params.dtype != DataType::kFp32 && params.alignment >= 4;
  Constants constants = {
      {"delta", delta}, {"jagged_queries", jagged}, {"even_tiles", even}, {"adds_gradients", params.adds_gradients}};
  if (params.attn_dropout && params.has_softmax()) constants.emplace_back("dropout_softmax", 1);
  if (params.attn_dropout && params.has_softmax_score()) constants.emplace_back("softmax_score_dropout", 1);
  // Parts of templates are for instances that have these, whatever they are.
  if (spec.takes_counts()) constants.emplace_back("sequence_counts", 1);
  if (spec.knows_sequence()) constants.emplace_back("sequence_number", 1);
  if (spec.mask_reads()) constants.emplace_back("mask_reads", 1);
  if (spec.knows_sequence() && params.has_intervals()) constants.emplace_back("numbered_intervals", 1);
  return constants;
}

std::string attention_kernel_prefix(const AttentionSpec& spec) {
  const HstuAttentionParams& params = spec.params();
  std::string prefix(spec.op());
  if (spec.query_rows() == QueryRows::kLastJagged) prefix += "_jagged";
  for (const Operand& operand : spec.operands()) {
    if (operand.use == OperandUse::kMask) continue;
    prefix += operand.kernel_suffix.empty() ? "_" + operand.name : std::string(operand.kernel_suffix);
  }
  if (params.has_softmax()) prefix += "_softmax";
  if (params.attn_dropout) prefix += "_dropout";
  if (params.adds_gradients) prefix += "_adding";
  return prefix;
}

}  // namespace hstujit
