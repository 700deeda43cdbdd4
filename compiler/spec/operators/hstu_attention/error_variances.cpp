// What rounding may do to the outputs of an implementation: the variance of each element's error, to first order, from
// the roundings that docs/ops.md, "Numerics", allows. Every intermediate value is carried with its variance, on the
// same rows as the reference; docs/numerics.md derives the formulas.
#include "compiler/spec/operators/hstu_attention/attention_reference.h"
#include "compiler/spec/operators/hstu_attention/error_estimates.h"

namespace hstujit {

namespace {

void forward_variances(const AttentionCall& x, const Variances& y, const Units& units, int64_t head,
                       const SequenceRows& rows) {
  if (x.params.is_softmax_head(head)) return softmax_forward_variances(x, y, units, head, rows);
  const Errors errors(x, units);
  const int64_t attn_dim = x.params.attn_dim, hidden_dim = x.params.hidden_dim;
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r, query = rows.first_query + r;
    Sums out(1, hidden_dim);
    for (int64_t j = 0; j < rows.n; ++j) {
      const double kept = x.kept(rows, head, i, j);
      if (kept == 0 || !x.valid(rows, head, i, j)) continue;
      const Estimate s = errors.score(x.q + x.place(query, head, attn_dim),
                                      x.k + x.place(rows.first + j, head, attn_dim), x.bias(rows.b, head, i, j));
      const Estimate weight = errors.scored(s, x.pair(rows, head, i, j)).value;
      out.add(0, errors.stored(weight, x.factor(query) * kept), x.v + x.place(rows.first + j, head, hidden_dim),
              units.operand);
    }
    write(out, 0, hidden_dim, y.out + x.place(query, head, hidden_dim), units);
  }
}

void backward_variances(const AttentionCall& x, const Variances& y, const Units& units, int64_t head,
                        const SequenceRows& rows) {
  if (x.params.is_softmax_head(head)) return softmax_backward_variances(x, y, units, head, rows);
  const Errors errors(x, units);
  const int64_t attn_dim = x.params.attn_dim, hidden_dim = x.params.hidden_dim;
  Sums dk(rows.n, attn_dim), dv(rows.n, hidden_dim);
  std::vector<OwnTerms> own = own_terms(x, y);
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r, row = rows.first_query + r;
    const double* const q = x.q + x.place(row, head, attn_dim);
    const double* const dout = x.dout + x.place(row, head, hidden_dim);
    const double factor = x.factor(row);
    Sums dq(1, attn_dim);
    Sum slopes;
    for (int64_t j = 0; j < rows.n; ++j) {
      const double kept = x.kept(rows, head, i, j);
      if (kept == 0 || !x.valid(rows, head, i, j)) continue;
      const double* const k = x.k + x.place(rows.first + j, head, attn_dim);
      const Estimate s = errors.score(q, k, x.bias(rows.b, head, i, j));
      const Estimate dp = scaled(errors.dot_hidden(dout, x.v + x.place(rows.first + j, head, hidden_dim)), kept);
      const ScorePlace pair = x.pair(rows, head, i, j);
      const auto [weight, derivative] = errors.scored(s, pair);
      const Estimate ds = errors.slope(dp, derivative);
      const Estimate stored = errors.stored(ds, factor);
      dq.add(0, stored, k, units.operand);
      dk.add(j, stored, q, units.operand);
      dv.add(j, errors.stored(weight, factor * kept), dout, units.operand);
      slopes.add(weight * dp);
      for (const ScoreFormula::Site& site : x.score.sites()) {
        const int64_t element = x.score.element(site, pair);
        if (element < 0) continue;
        const Estimate term = errors.site_term(dp * errors.site_slope(site, s, pair), site, factor);
        own[site.operand].add(static_cast<size_t>(element),
                              {term.value, term.variance + square(units.arithmetic * term.value)});
      }
      if (y.dbias != nullptr) {
        const Estimate term = scaled(ds, factor);
        y.dbias[x.bias_at(rows.b, head, i, j)] += term.variance + square(units.arithmetic * term.value);
      }
    }
    write(dq, 0, attn_dim, y.dq + x.place(row, head, attn_dim), units);
    if (y.slopes != nullptr) y.slopes[x.place(row, head, 1)] = slopes.total(units.sum);
  }
  for (OwnTerms& terms : own) terms.finish();
  for (int64_t j = 0; j < rows.n; ++j) {
    write(dk, j, attn_dim, y.dk + x.place(rows.first + j, head, attn_dim), units);
    write(dv, j, hidden_dim, y.dv + x.place(rows.first + j, head, hidden_dim), units);
  }
}

}  // namespace

std::vector<std::vector<double>> attention_variances(const AttentionSpec& spec, Direction direction,
                                                     const std::vector<HostValue>& inputs,
                                                     const std::vector<bool>& sequences) {
  const HstuAttentionParams& params = spec.params();
  const Signature arguments = spec.signature(direction);
  const AttentionCall call(spec, direction, inputs);
  std::vector<std::vector<double>> variances(arguments.size());
  const auto zeros = [&](std::string_view name, int64_t elements) -> double* {
    const int index = find_argument(arguments, name);
    if (index < 0) return nullptr;
    variances[static_cast<size_t>(index)].assign(static_cast<size_t>(elements), 0.0);
    return variances[static_cast<size_t>(index)].data();
  };
  const int64_t heads = params.heads, queries = call.query_rows(), rows = call.rows();
  const auto gradient_of = [&](OperandUse use) -> double* {
    const Operand* const operand = spec.operand(use);
    if (operand == nullptr) return nullptr;
    return zeros(operand->gradient_name(), static_cast<int64_t>(elements(*operand, call.sizes())));
  };
  double* const dfactors = gradient_of(OperandUse::kFactor);
  std::vector<Estimate> slopes(dfactors == nullptr ? 0 : static_cast<size_t>(queries * heads));
  std::vector<SharedSums> own;
  for (const Operand& operand : call.score.operands())
    own.emplace_back(static_cast<size_t>(operand.gradient ? elements(operand, call.sizes()) : 0));
  const Variances outputs = {zeros("out", queries * heads * params.hidden_dim),
                             zeros("dq", queries * heads * params.attn_dim),
                             zeros("dk", rows * heads * params.attn_dim),
                             zeros("dv", rows * heads * params.hidden_dim),
                             gradient_of(OperandUse::kBias),
                             dfactors == nullptr ? nullptr : slopes.data(),
                             &own};

  const Units units = units_of(params);
  const auto compute = direction == Direction::kForward ? forward_variances : backward_variances;
  call.for_each_head(sequences, [&](const SequenceRows& of, int64_t head) { compute(call, outputs, units, head, of); });
  for (size_t o = 0; o < own.size(); ++o) {
    const Operand& operand = call.score.operands()[o];
    if (double* const to = zeros(operand.gradient_name(), static_cast<int64_t>(own[o].size())); to != nullptr)
      own[o].write(to, units);
  }
  const bool by_row = params.has_row_factors();
  for (size_t index = 0; index < slopes.size();) {
    Sum sum;
    const size_t end = by_row ? index + static_cast<size_t>(heads) : slopes.size();
    const int64_t at = call.factor_at(static_cast<int64_t>(index / static_cast<size_t>(heads)));
    for (; index < end; ++index) sum.add(slopes[index]);
    dfactors[at] = sum.total(units.sum).variance;
  }
  return variances;
}

}  // namespace hstujit
