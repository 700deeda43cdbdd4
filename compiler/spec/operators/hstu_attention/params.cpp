#include "compiler/spec/operators/hstu_attention/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/spec/alignment.h"
#include "compiler/spec/operators/hstu_attention/config_rules.h"
#include "compiler/spec/operators/hstu_attention/operands/declarations.h"
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"
#include "compiler/spec/operators/hstu_attention/own_mask.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"

namespace hstujit {

namespace {

// Semi-local attention fixes what every row sees; only targets combine with it.
void check_semi_local(const HstuAttentionParams& p, ConfigRules& rules) {
  const std::string rule = "semi-local attention (sla_k1 or sla_k2 above 0) replaces it; allowed: ";
  if (!p.causal) rules.broken("causal", p.causal, rule + "true");
  if (p.max_attn_len > 0) rules.broken("max_attn_len", p.max_attn_len, rule + "0");
  if (p.target_group_size > 1) rules.broken("target_group_size", p.target_group_size, rule + "1");
}

// "No mask" leaves nothing for the other fields of the mask to say.
void check_full_mask(const HstuAttentionParams& p, ConfigRules& rules) {
  const std::string rule = "with no mask (full_mask, or max_attn_len -1) every pair is valid; allowed: ";
  if (p.causal) rules.broken("causal", p.causal, rule + "false");
  if (p.num_targets) rules.broken("num_targets", std::string("set"), rule + "false");
  if (p.num_contexts) rules.broken("num_contexts", std::string("set"), rule + "false");
  const std::pair<std::string_view, int64_t> others[] = {{"max_attn_len", p.max_attn_len},
                                                         {"contextual_seq_len", p.contextual_seq_len},
                                                         {"sla_k1", p.sla_k1},
                                                         {"sla_k2", p.sla_k2}};
  for (const auto& [name, value] : others) {
    if (value != 0) rules.broken(name, value, rule + "0");
  }
}

// Fields that nothing is left for where something else says what every row sees.
void check_replaced(const HstuAttentionParams& p, const std::string& rule, ConfigRules& rules) {
  if (p.full_mask) rules.broken("full_mask", p.full_mask, rule + "false");
  if (p.num_contexts) rules.broken("num_contexts", std::string("set"), rule + "false");
  if (p.target_group_size > 1) rules.broken("target_group_size", p.target_group_size, rule + "1");
  const std::pair<std::string_view, int64_t> others[] = {{"max_attn_len", p.max_attn_len},
                                                         {"min_full_attn_seq_len", p.min_full_attn_seq_len},
                                                         {"contextual_seq_len", p.contextual_seq_len},
                                                         {"sla_k1", p.sla_k1},
                                                         {"sla_k2", p.sla_k2}};
  for (const auto& [name, value] : others) {
    if (value != 0) rules.broken(name, value, rule + "0");
  }
}

// A condition says what every row sees, so that nothing is left for the fields to say; only `causal` may be given,
// since it is true where it is not.
void check_own_mask(const HstuAttentionParams& p, ConfigRules& rules) {
  const Result<std::vector<Operand>> operands = parse_own_operands(p.operands, p.heads);
  if (!operands.ok()) return;  // said of the score
  const Result<Expression> mask = parse_mask(p.mask, *operands);
  if (!mask.ok()) return rules.broken("mask", Json(p.mask), mask.status().message());
  if (!p.num_targets && mask->depends_on("t")) {
    rules.broken("mask", Json(p.mask),
                 "launches take no num_targets; allowed: num_targets=true, or a mask without targets");
  }
  check_replaced(p, "mask replaces it; allowed: ", rules);
}

// A launch says what every row sees, so that nothing is left for the fields to say, but for `causal` as above.
void check_intervals(const HstuAttentionParams& p, ConfigRules& rules) {
  if (p.attn_func % 2 == 0) {
    rules.broken("attn_func", p.attn_func,
                 fmt::format("the first interval has an end alone, and each further one a begin and an end; allowed: "
                             "0, or an odd number up to {}",
                             kMaxIntervalEnds));
  }
  const std::string rule = "attn_func replaces it; allowed: ";
  if (p.has_own_mask()) rules.broken("mask", Json(p.mask), rule + "no mask");
  if (p.num_targets) rules.broken("num_targets", std::string("set"), rule + "false");
  check_replaced(p, rule, rules);
  if (p.attn_func_heads <= 1 || !parse_own_operands(p.operands, p.heads).ok()) return;
  // A forward call does not know whether the gradient of a bias or of factors will be asked for.
  for (const Operand& operand : operands_of(p)) {
    if (operand.use == OperandUse::kMask || (operand.is_own() && !operand.gradient)) continue;
    rules.broken(
        "attn_func_heads", p.attn_func_heads,
        fmt::format("{} may have a gradient, which is a sum over heads that see the same; allowed: 1", operand.name));
  }
}

// The gradient of an element of a row is a sum over the pairs of its row, and over those of its column.
std::string unsummed_read(const Expression& score, const Operand& operand) {
  const int symbol = score.symbol(operand.name);
  for (const Expression::Node& node : score.nodes()) {
    if (node.op != Operator::kRead || node.value != symbol) continue;
    const Expression::Node& index = score.node(node.operands[0]);
    const bool own =
        index.op == Operator::kSymbol && (index.value == score.symbol("row") || index.value == score.symbol("col"));
    if (!own) {
      return fmt::format("{0} has a gradient and is read at another position; allowed: {0}[row] and {0}[col]",
                         operand.name);
    }
  }
  return {};
}

// An entry that depends on x would have to be summed by what rounding makes of it.
std::string read_by_product(const Expression& score, const Operand& operand) {
  const int symbol = score.symbol(operand.name);
  const std::vector<bool> by_product = score.users_of(score.symbol("x"));
  for (const Expression::Node& node : score.nodes()) {
    if (node.op == Operator::kRead && node.value == symbol && node.operands[0] >= 0 &&
        by_product[static_cast<size_t>(node.operands[0])]) {
      return fmt::format("the index of {} depends on x; allowed: an index of positions and of operands", operand.name);
    }
  }
  return {};
}

// Nothing where the text, which is that of the field, is no score.
std::optional<Expression> check_score(const HstuAttentionParams& p, std::string_view field, const std::string& text,
                                      const std::vector<Operand>& operands, ConfigRules& rules) {
  Result<Expression> score = parse_score(text, operands);
  if (!score.ok()) {
    rules.broken(field, Json(text), score.status().message());
    return std::nullopt;
  }
  for (const Operand& operand : operands) {
    std::string refused = read_by_product(*score, operand);
    if (refused.empty() && operand.gradient && operand.kind == &row_kind()) refused = unsummed_read(*score, operand);
    if (!refused.empty()) rules.broken(field, Json(text), refused);
  }
  if (!p.num_targets && score->depends_on("targets")) {
    rules.broken(field, Json(text),
                 "launches take no num_targets; allowed: num_targets=true, or a score without targets");
  }
  return *std::move(score);
}

// Each operand is read, by what heads have or by the mask.
void check_reads(const HstuAttentionParams& p, const std::vector<Expression>& scores,
                 const std::vector<Operand>& operands, ConfigRules& rules) {
  const Result<Expression> mask = parse_mask(p.mask.empty() ? "true" : p.mask, operands);
  for (const Operand& operand : operands) {
    const auto reads = [&](const Expression& score) { return score.depends_on(operand.name); };
    if (std::ranges::any_of(scores, reads) || !mask.ok()) continue;  // the latter is said of the mask
    const bool masks = mask->symbol(operand.name) >= 0 && mask->depends_on(operand.name);
    if (masks && !operand.gradient) continue;
    const char* const readers =
        p.num_softmax_heads == p.heads ? "neither softmax_score, which all heads have," : "neither the score";
    return rules.broken(
        "operands", Json(p.operands),
        masks ? fmt::format("{0} has a gradient, and the mask alone reads it; allowed: {0} without grad", operand.name)
              : fmt::format("{} nor the mask reads {}; allowed: what one of them reads", readers, operand.name));
  }
}

void check_scores(const HstuAttentionParams& p, ConfigRules& rules) {
  const Result<std::vector<Operand>> operands = parse_own_operands(p.operands, p.heads);
  if (!operands.ok()) return rules.broken("operands", Json(p.operands), operands.status().message());
  std::vector<Expression> scores;  // that heads have
  const auto check = [&](std::string_view field, const std::string& text, bool of_heads) {
    std::optional<Expression> score = check_score(p, field, text, *operands, rules);
    if (score && of_heads) scores.push_back(*std::move(score));
    return score.has_value();
  };
  bool valid = check("score", p.score, p.num_softmax_heads != p.heads);
  if (p.has_softmax_score()) valid = check("softmax_score", p.softmax_score, true) && valid;
  if (valid) check_reads(p, scores, *operands, rules);
}

void check_softmax_heads(const HstuAttentionParams& p, ConfigRules& rules) {
  if (p.num_softmax_heads > p.heads) {
    return rules.broken("num_softmax_heads", p.num_softmax_heads,
                        fmt::format("heads is {0}; allowed: 0 to {0}", p.heads));
  }
  if (p.has_softmax_score() && !p.has_softmax()) {
    rules.broken("softmax_score", Json(p.softmax_score),
                 "no head has softmax; allowed: none, or num_softmax_heads above 0 with it");
  }
}

}  // namespace

void spell_out_full_mask(Json& json, const std::string& path, Mistakes& mistakes) {
  if (!json.is_object()) return;
  ConfigRules rules(path, mistakes);
  const auto window = json.find("max_attn_len");
  if (window != json.end() && window->is_number_integer() && *window == -1) {
    const auto full = json.find("full_mask");
    if (full != json.end() && *full == false) {
      rules.broken("full_mask", *full, "max_attn_len -1 means no mask; allowed: true, or max_attn_len from 0");
    } else if (!json.contains("causal") || json["causal"] == true) {
      rules.broken("max_attn_len", -1, "that means no mask and needs causal=false; allowed with causal=true: from 0");
    }
    *window = 0;
    json["full_mask"] = true;
  } else if (json.contains("full_mask") && json["full_mask"] == true && !json.contains("causal")) {
    json["causal"] = false;
  }
}

void check_hstu_attention(const HstuAttentionParams& p, const std::string& path, Mistakes& mistakes) {
  ConfigRules rules(path, mistakes);
  check_alignment(p.alignment, p.dtype, path, mistakes);
  // With semi-local attention there are no groups, with or without targets; with no mask there are no targets.
  if (!p.has_own_mask() && !p.has_intervals() && p.target_group_size > 1 && !p.num_targets &&
      (p.full_mask || !p.semi_local())) {
    rules.broken("target_group_size", p.target_group_size,
                 p.full_mask ? "only targets come in groups, and with no mask there are none; allowed: 1"
                             : "only targets come in groups; allowed: 1, or num_targets=true with it");
  }
  if (p.num_contexts && p.contextual_seq_len > 0) {
    rules.broken("contextual_seq_len", p.contextual_seq_len,
                 "num_contexts says it of each sequence; allowed: 0, or num_contexts=false with it");
  }
  check_operands(p, path, mistakes);
  check_scores(p, rules);
  check_softmax_heads(p, rules);
  if (p.attn_func_heads > 0 && !p.has_intervals()) {
    rules.broken("attn_func_heads", p.attn_func_heads,
                 "launches take no attn_func; allowed: 0, or attn_func above 0 with it");
  }
  if (p.has_intervals()) {
    check_intervals(p, rules);
  } else if (p.has_own_mask()) {
    check_own_mask(p, rules);
  } else if (p.full_mask) {
    check_full_mask(p, rules);
  } else if (p.semi_local()) {
    check_semi_local(p, rules);
  }
}

void make_canonical(HstuAttentionParams& p) {
  if (!p.attn_dropout) p.attn_seed_tensor = false;
  make_canonical_operands(p);
  p.score = canonical_score(p.score, own_operands(p.operands, p.heads));
  p.softmax_score = canonical_softmax_score(p.softmax_score, own_operands(p.operands, p.heads));
  p.operands = canonical_own_operands(p.operands, p.heads);
  if (p.num_softmax_heads == p.heads) p.score = HstuAttentionParams().score;
  if (p.dtype != DataType::kFp32) p.precision = MatmulPrecision::kTf32;
  // Contiguous heads are aligned no better.
  p.alignment = std::min(p.alignment, row_alignment(p.attn_dim | p.hidden_dim, p.dtype));
  if (p.has_intervals()) p.causal = false;
  if (p.has_own_mask()) {
    if (auto fields = fields_of_mask(p)) {
      p = *std::move(fields);
    } else {
      p.mask = canonical_mask(p.mask, own_operands(p.operands, p.heads));
      p.causal = false;
    }
  }
  // A window over every sequence there can be is none.
  if (p.max_attn_len >= kMaxSeqLen || p.min_full_attn_seq_len >= kMaxSeqLen) p.max_attn_len = 0;
  if (p.max_attn_len == 0) p.min_full_attn_seq_len = 0;
  if (p.semi_local()) {
    p.sla_k2 = std::max(p.sla_k2, p.contextual_seq_len);
    p.contextual_seq_len = 0;
  }
}

}  // namespace hstujit
