#include "compiler/spec/operators/hstu_attention/operands/declarations.h"

#include <fmt/format.h>

#include <optional>

#include "compiler/spec/operators/hstu_attention/config_rules.h"

namespace hstujit {

namespace {

std::optional<Operand> num_targets(const HstuAttentionParams& params) {
  if (!params.num_targets) return std::nullopt;
  return Operand{.name = "num_targets",
                 .kind = &sequence_kind(),
                 .use = OperandUse::kMask,
                 .dtype = params.offsets_dtype,
                 .doc = "targets at the end of each sequence",
                 .field = "num_targets"};
}

std::optional<Operand> rab(const HstuAttentionParams& params) {
  if (params.rab_heads == 0) return std::nullopt;
  return Operand{.name = "rab",
                 .kind = &pair_kind(),
                 .use = OperandUse::kBias,
                 .dtype = params.dtype,
                 .heads = params.rab_heads,
                 .alignment = params.alignment,
                 .gradient = params.drab,
                 .doc = "relative bias of the dot products",
                 .gradient_doc = "gradient of the bias",
                 .before_doc = "what drab is added to",
                 .field = "rab_heads",
                 .kernel_suffix = "_rab"};
}

std::optional<Operand> attn_scale(const HstuAttentionParams& params) {
  if (params.attn_scale == "none") return std::nullopt;
  return Operand{.name = "attn_scale",
                 .kind = params.attn_scale == "rows" ? &row_kind() : &scalar_kind(),
                 .use = OperandUse::kFactor,
                 .dtype = DataType::kFp32,
                 .gradient = params.dattn_scale,
                 .doc = "factor of each row of P, behind the score function, in place of the scale",
                 .gradient_doc = "gradient of the factors of the rows of P",
                 .before_doc = "what dattn_scale is added to",
                 .field = "attn_scale",
                 .kernel_suffix = fmt::format("_scale_{}", params.attn_scale)};
}

constexpr std::optional<Operand> (*kDeclarations[])(const HstuAttentionParams&) = {num_targets, rab, attn_scale};

}  // namespace

std::vector<Operand> operands_of(const HstuAttentionParams& params) {
  std::vector<Operand> operands;
  for (const auto declare : kDeclarations) {
    if (std::optional<Operand> operand = declare(params)) operands.push_back(*std::move(operand));
  }
  return operands;
}

void check_operands(const HstuAttentionParams& params, const std::string& path, Mistakes& mistakes) {
  if (params.rab_heads == 0 || params.heads % params.rab_heads == 0) return;
  ConfigRules(path, mistakes)
      .broken("rab_heads", params.rab_heads,
              fmt::format("heads share the bias heads evenly; allowed: 0, or a divisor of heads, which is {}",
                          params.heads));
}

void make_canonical_operands(HstuAttentionParams& params) {
  if (!params.has_bias()) params.drab = true;
  if (!params.has_factors()) params.dattn_scale = true;
  params.adds_gradients = params.adds_gradients && (params.returns_dbias() || params.returns_dfactors());
}

void return_all_gradients(HstuAttentionParams& params) { params.drab = params.dattn_scale = true; }

}  // namespace hstujit
