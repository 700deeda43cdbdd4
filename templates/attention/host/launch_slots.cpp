#include "templates/attention/host/launch_slots.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "compiler/plan/device_types.h"

namespace hstujit {

namespace {

// Pointer and strides of rab or drab.
std::vector<ParamSlot> bias_slots(const Signature& signature, const std::string& tensor, std::string type) {
  std::vector<ParamSlot> slots = {argument_slot(signature, tensor, ParamSlot::Kind::kPointer, tensor)};
  slots[0].type = std::move(type);
  int dimension = 0;
  for (const char* name : {"_batch_stride", "_head_stride", "_row_stride"}) {
    slots.push_back(argument_slot(signature, tensor + name, ParamSlot::Kind::kStride, tensor));
    slots.back().dimension = dimension++;
  }
  return slots;
}

ParamSlot factors_slot(const Signature& signature, const std::string& tensor, std::string type) {
  ParamSlot result = argument_slot(signature, tensor, ParamSlot::Kind::kPointer, tensor);
  result.type = std::move(type);
  return result;
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
  for (const Argument& argument : signature) {
    if (argument.role != ArgumentRole::kOutput) continue;
    if (argument.name == "drab") {
      add(bias_slots(signature, argument.name, data));
    } else if (argument.name == "dattn_scale") {
      slots.push_back(factors_slot(signature, argument.name, "float*"));
    } else {
      add(attention_tensor_slots(signature, argument.name, data));
    }
  }
  if (find_argument(signature, "drab_before") >= 0) add(bias_slots(signature, "drab_before", "const " + data));
  if (find_argument(signature, "dattn_scale_before") >= 0)
    slots.push_back(factors_slot(signature, "dattn_scale_before", "const float*"));
  if (params.has_rab()) {
    add(bias_slots(signature, "rab", "const " + data));
    slots.push_back(argument_slot(signature, "max_seq_len", Kind::kInt, "max_seq_len"));
  }
  if (params.has_attn_scale()) slots.push_back(factors_slot(signature, "attn_scale", "const float*"));
  slots.push_back(argument_slot(signature, "seq_offsets", Kind::kPointer, "seq_offsets"));
  slots.back().type = offset;
  if (spec.query_rows() == QueryRows::kLastJagged) {
    slots.push_back(argument_slot(signature, "seq_offsets_q", Kind::kPointer, "seq_offsets_q"));
    slots.back().type = offset;
  }
  if (params.num_targets) {
    slots.push_back(argument_slot(signature, "num_targets", Kind::kPointer, "num_targets"));
    slots.back().type = offset;
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
  return {scalar_factor(max_query_rows(spec, signature), block_m), constant_factor(spec.params().heads),
          batch_factor(signature)};
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
  const bool even = params.has_rab() && params.dtype != DataType::kFp32 && params.alignment >= 4;
  return {
      {"delta", delta}, {"jagged_queries", jagged}, {"even_tiles", even}, {"adds_gradients", params.adds_gradients}};
}

std::string attention_kernel_prefix(const AttentionSpec& spec) {
  const HstuAttentionParams& params = spec.params();
  std::string prefix(spec.op());
  if (spec.query_rows() == QueryRows::kLastJagged) prefix += "_jagged";
  if (params.has_rab()) prefix += "_rab";
  if (params.has_attn_scale()) prefix += fmt::format("_scale_{}", params.attn_scale);
  if (params.adds_gradients) prefix += "_adding";
  return prefix;
}

}  // namespace hstujit
