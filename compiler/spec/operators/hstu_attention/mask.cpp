// valid(i, j) as docs/ops-attention.md writes it: the definition that everything else is held to.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "compiler/expression/evaluate.h"
#include "compiler/spec/operators/hstu_attention/own_mask.h"

namespace hstujit {

namespace {

// A reference asks for all pairs of one mask, so that the last one is kept.
bool own_mask_holds(const HstuAttentionParams& params, int64_t i, int64_t j, int64_t n, int64_t t) {
  struct Parsed {
    explicit Parsed(const HstuAttentionParams& of)
        : text(of.mask), operands(of.operands), expression(without_reads(own_mask(of), true)), evaluator(expression) {}
    std::string text, operands;
    Expression expression;
    ExpressionEvaluator evaluator;
  };
  thread_local std::unique_ptr<Parsed> last;
  if (!last || last->text != params.mask || last->operands != params.operands) last = std::make_unique<Parsed>(params);
  const int64_t values[] = {i, j, n, t};
  return last->evaluator.at(values) != 0;
}

}  // namespace

bool hstu_attention_valid(const HstuAttentionParams& p, int64_t i, int64_t j, int64_t n, int64_t t, int64_t contexts) {
  if (!p.num_targets) t = 0;
  if (p.has_own_mask()) return own_mask_holds(p, i, j, n, t);
  if (p.full_mask) return true;
  const int64_t c = p.num_contexts ? contexts : p.contextual_seq_len;
  const int64_t history = std::max<int64_t>(n - t, 0);

  if (p.semi_local()) {
    if (i >= history) return j < history;
    const int64_t k2 = std::max(p.sla_k2, c);
    return j < std::min(k2, i + 1) || (j >= std::max(k2, i - p.sla_k1 + 1) && j < i + 1);
  }

  const int64_t max_id = c == 0 ? n - t : n - c + 1 - t;
  const auto id = [&](int64_t x) {
    const int64_t plain = c == 0 ? x : std::max<int64_t>(x - c + 1, 0);
    return p.num_targets ? std::min(plain, max_id) : plain;
  };
  int64_t d = id(i) - id(j);
  if (!p.causal) d = std::abs(d);
  bool valid = i == j || d > 0;
  if (p.num_targets && i >= history && j >= history) {
    const bool same_group = (i - history) / p.target_group_size == (j - history) / p.target_group_size;
    valid = valid || (same_group && j <= i);
  }
  const int64_t w = p.max_attn_len, f = p.min_full_attn_seq_len;
  if (w > 0) valid = valid && (d <= w || (f > 0 && id(i) >= max_id - f));
  if (c > 0) valid = valid || (id(i) == 0 && id(j) < max_id);
  return valid;
}

}  // namespace hstujit
