#include "compiler/spec/hstu_attention/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/spec/fields_json.h"

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

// The JSON spelling of "no mask" is causal=false with max_attn_len=-1; full_mask=true says the same, and then causal
// need not be given.
Status read_full_mask(Json& json, const std::string& path) {
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

}  // namespace

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
  if (p.full_mask) HSTUJIT_RETURN_IF_ERROR(check_full_mask(p, path));
  if (p.semi_local()) HSTUJIT_RETURN_IF_ERROR(check_semi_local(p, path));

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

Result<OpSpecPtr> parse_hstu_attention(const Json& json, const std::string& path) {
  Json plain = json;
  HSTUJIT_RETURN_IF_ERROR(read_full_mask(plain, path));
  HstuAttentionParams params;
  HSTUJIT_RETURN_IF_ERROR(fields_from_json(plain, path, params, {"op"}));
  HSTUJIT_ASSIGN_OR_RETURN(params, canonical_hstu_attention(params, path));
  return OpSpecPtr(std::make_shared<HstuAttentionSpec>(params));
}

Json schema_hstu_attention() {
  Json schema = fields_schema<HstuAttentionParams>();
  Json& window = schema["properties"]["max_attn_len"];
  window["minimum"] = -1;
  window["description"] = "window in ids; 0 means none, -1 together with causal=false means no mask at all";
  return schema;
}

Json HstuAttentionSpec::to_json() const {
  Json json = {{"op", "hstu_attention"}};
  json.update(fields_to_json(params_));
  return json;
}

Signature HstuAttentionSpec::signature(Direction) const {
  const auto& p = params_;
  const auto data = [&](const char* name, ArgumentRole role, int64_t width, std::string_view doc) {
    return Argument{name,
                    ArgumentKind::kTensor,
                    role,
                    p.dtype,
                    {Dimension::of("L"), Dimension::constant(p.heads), Dimension::constant(width)},
                    static_cast<int>(p.alignment),
                    doc};
  };
  const auto integers = [&](const char* name, Dimension size, std::string_view doc) {
    return Argument{name,
                    ArgumentKind::kTensor,
                    ArgumentRole::kInput,
                    p.offsets_dtype,
                    {std::move(size)},
                    static_cast<int>(size_of(p.offsets_dtype)),
                    doc};
  };
  const auto scalar = [](const char* name, ArgumentKind kind, std::string_view doc) {
    Argument argument;
    argument.name = name;
    argument.kind = kind;
    argument.doc = doc;
    return argument;
  };
  Signature signature = {
      data("q", ArgumentRole::kInput, p.attn_dim, "queries"), data("k", ArgumentRole::kInput, p.attn_dim, "keys"),
      data("v", ArgumentRole::kInput, p.hidden_dim, "values"),
      integers("seq_offsets", Dimension::of("B", 1), "first row of each sequence, then the number of rows")};
  if (p.num_targets)
    signature.push_back(integers("num_targets", Dimension::of("B"), "targets at the end of each sequence"));
  signature.push_back(scalar("max_seq_len", ArgumentKind::kInt, "no sequence is longer"));
  signature.back().most = kMaxSeqLen;
  signature.push_back(scalar("alpha", ArgumentKind::kFloat, "factor of the dot products"));
  signature.push_back(scalar("scaling_seqlen", ArgumentKind::kInt, "divisor of the scores; max_seq_len when <= 0"));
  signature.push_back(data("out", ArgumentRole::kOutput, p.hidden_dim, "result"));
  return signature;
}

double HstuAttentionSpec::error_bound(Direction direction) const {
  switch (params_.dtype) {
    case DataType::kFp32:
      return params_.precision == MatmulPrecision::kIeee ? 1e-5 : 1e-3;
    case DataType::kFp16:
      return 2e-3;
    default:
      return direction == Direction::kForward ? 6e-3 : 1e-2;
  }
}

}  // namespace hstujit
