#include "compiler/spec/hstu_attention/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hstujit {

namespace {

Status rule_error(const std::string& path, std::string_view field, const Json& value, std::string_view rule) {
  return Status(Code::kInvalidConfig, fmt::format("{} is {}, but {}", join_path(path, field), brief_json(value), rule));
}

// Semi-local attention fixes what every row sees; only targets combine with it.
Status check_semi_local(const HstuAttentionParams& p, const std::string& path) {
  constexpr std::string_view kRule = "semi-local attention (sla_k1 or sla_k2 above 0) replaces it; allowed: ";
  if (!p.causal) return rule_error(path, "causal", p.causal, std::string(kRule) + "true");
  if (p.max_attn_len > 0) return rule_error(path, "max_attn_len", p.max_attn_len, std::string(kRule) + "0");
  if (p.target_group_size > 1)
    return rule_error(path, "target_group_size", p.target_group_size, std::string(kRule) + "1");
  return {};
}

// "No mask" leaves nothing for the other fields of the mask to say.
Status check_full_mask(const HstuAttentionParams& p, const std::string& path) {
  constexpr std::string_view kRule = "with no mask (full_mask, or max_attn_len -1) every pair is valid; allowed: ";
  if (p.causal) return rule_error(path, "causal", p.causal, std::string(kRule) + "false");
  if (p.num_targets) return rule_error(path, "num_targets", p.num_targets, std::string(kRule) + "false");
  const std::pair<std::string_view, int64_t> others[] = {{"max_attn_len", p.max_attn_len},
                                                         {"contextual_seq_len", p.contextual_seq_len},
                                                         {"sla_k1", p.sla_k1},
                                                         {"sla_k2", p.sla_k2}};
  for (const auto& [name, value] : others) {
    if (value != 0) return rule_error(path, name, value, std::string(kRule) + "0");
  }
  return {};
}

}  // namespace

Status spell_out_full_mask(Json& json, const std::string& path) {
  const auto window = json.find("max_attn_len");
  if (window != json.end() && window->is_number_integer() && *window == -1) {
    const auto full = json.find("full_mask");
    if (full != json.end() && *full == false) {
      return rule_error(path, "full_mask", *full,
                        "max_attn_len -1 means no mask; allowed: true, or max_attn_len from 0");
    }
    if (!json.contains("causal") || json["causal"] == true) {
      return rule_error(path, "max_attn_len", -1,
                        "that means no mask and needs causal=false; allowed with causal=true: from 0");
    }
    json["max_attn_len"] = 0;
    json["full_mask"] = true;
  } else if (json.contains("full_mask") && json["full_mask"] == true && !json.contains("causal")) {
    json["causal"] = false;
  }
  return {};
}

Result<HstuAttentionParams> canonical_hstu_attention(HstuAttentionParams p, const std::string& path) {
  if (p.alignment & (p.alignment - 1)) return value_error(join_path(path, "alignment"), p.alignment, "2, 4, 8 or 16");
  const auto element = static_cast<int64_t>(size_of(p.dtype));
  if (p.alignment < element) {
    return rule_error(path, "alignment", p.alignment,
                      fmt::format("an element of {} has {} bytes; allowed: a power of two from {} to 16",
                                  to_string(p.dtype), element, element));
  }
  if (p.target_group_size > 1 && !p.num_targets) {
    return rule_error(path, "target_group_size", p.target_group_size,
                      "only targets come in groups; allowed: 1, or num_targets=true with it");
  }
  if (p.has_rab() && p.heads % p.rab_heads != 0) {
    return rule_error(
        path, "rab_heads", p.rab_heads,
        fmt::format("heads share the bias heads evenly; allowed: 0, or a divisor of heads, which is {}", p.heads));
  }
  if (p.full_mask) HSTUJIT_RETURN_IF_ERROR(check_full_mask(p, path));
  if (p.semi_local()) HSTUJIT_RETURN_IF_ERROR(check_semi_local(p, path));

  if (!p.has_rab()) p.drab = true;
  if (!p.has_attn_scale()) p.dattn_scale = true;
  if (p.dtype != DataType::kFp32) p.precision = MatmulPrecision::kTf32;
  // A window over every sequence there can be is none.
  if (p.max_attn_len >= kMaxSeqLen || p.min_full_attn_seq_len >= kMaxSeqLen) p.max_attn_len = 0;
  if (p.max_attn_len == 0) p.min_full_attn_seq_len = 0;
  if (p.semi_local()) {
    p.sla_k2 = std::max(p.sla_k2, p.contextual_seq_len);
    p.contextual_seq_len = 0;
  }
  return p;
}

}  // namespace hstujit
