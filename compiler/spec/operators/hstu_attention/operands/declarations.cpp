#include "compiler/spec/operators/hstu_attention/operands/declarations.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/spec/operators/hstu_attention/config_rules.h"
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"

namespace hstujit {

std::vector<Operand> operands_of(const HstuAttentionParams& params) {
  std::vector<Operand> operands;
  const auto add = [&](const char* name, const OperandKind& kind, OperandUse use, DataType dtype) -> Operand& {
    Operand& operand = operands.emplace_back();
    operand.name = operand.field = name;
    operand.kind = &kind;
    operand.use = use;
    operand.dtype = dtype;
    return operand;
  };
  if (params.num_targets) {
    add("num_targets", sequence_kind(), OperandUse::kMask, params.offsets_dtype).doc =
        "targets at the end of each sequence";
  }
  if (params.has_bias()) {
    Operand& rab = add("rab", pair_kind(), OperandUse::kBias, params.dtype);
    rab.field = "rab_heads";
    rab.heads = params.rab_heads;
    rab.alignment = params.alignment;
    rab.gradient = params.drab;
    rab.doc = "relative bias of the dot products";
    rab.gradient_doc = "gradient of the bias";
    rab.before_doc = "what drab is added to";
  }
  if (params.has_factors()) {
    const bool of_rows = params.has_row_factors();
    Operand& factors = add("attn_scale", of_rows ? row_kind() : scalar_kind(), OperandUse::kFactor, DataType::kFp32);
    factors.gradient = params.dattn_scale;
    factors.doc = "factor of each row of P, after the score function, in place of the scale";
    factors.gradient_doc = "gradient of the factors of the rows of P";
    factors.before_doc = "what dattn_scale is added to";
    factors.kernel_suffix = of_rows ? "_scale_rows" : "_scale_scalar";
  }
  if (params.num_contexts) {
    add("num_contexts", sequence_kind(), OperandUse::kMask, params.offsets_dtype).doc =
        "contexts at the beginning of each sequence";
  }
  if (params.has_intervals()) {
    Operand& intervals = add("attn_func", intervals_kind(), OperandUse::kMask, DataType::kInt32);
    intervals.heads = params.attn_func_heads;
    intervals.entries = params.attn_func;
    intervals.doc = "ends of the intervals of columns that each row of q sees";
  }
  for (const Operand& operand : own_operands(params.operands, params.heads)) operands.push_back(operand);
  return operands;
}

void check_operands(const HstuAttentionParams& params, const std::string& path, Mistakes& mistakes) {
  ConfigRules rules(path, mistakes);
  const auto check_heads = [&](std::string_view field, int64_t heads, std::string_view whose) {
    if (heads == 0 || params.heads % heads == 0) return;
    rules.broken(field, heads,
                 fmt::format("heads share the {} heads evenly; allowed: 0, or a divisor of heads, which is {}", whose,
                             params.heads));
  };
  check_heads("rab_heads", params.rab_heads, "bias");
  check_heads("attn_func_heads", params.attn_func_heads, "mask's");
}

void make_canonical_operands(HstuAttentionParams& params) {
  if (params.has_intervals()) params.attn_func_heads = std::max<int64_t>(params.attn_func_heads, 1);
  if (!params.has_bias()) params.drab = true;
  if (!params.has_factors()) params.dattn_scale = true;
  const std::vector<Operand> operands = operands_of(params);
  params.adds_gradients = params.adds_gradients && std::ranges::any_of(operands, &Operand::gradient);
}

}  // namespace hstujit
