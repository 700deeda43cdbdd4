#include "compiler/spec/operators/hstu_attention/attention_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/spec/limits.h"
#include "compiler/spec/operators/hstu_attention/dropout.h"
#include "compiler/spec/operators/hstu_attention/mask_expression.h"
#include "compiler/spec/operators/hstu_attention/operands/declarations.h"
#include "compiler/spec/operators/hstu_attention/own_mask.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/score_sites.h"
#include "compiler/spec/sequence_arguments.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

// (rows, H, width)
Argument rows_argument(const HstuAttentionParams& params, const char* name, ArgumentRole role, Dimension rows,
                       int64_t width, std::string_view doc) {
  Argument argument;
  argument.name = name;
  argument.role = role;
  argument.dtype = params.dtype;
  argument.shape = {std::move(rows), Dimension::constant(params.heads), Dimension::constant(width)};
  argument.alignment = static_cast<int>(params.alignment);
  argument.doc = doc;
  return argument;
}

void add_tensors(const HstuAttentionParams& p, QueryRows rows, Direction direction, Signature& signature) {
  const auto add = [&](const char* name, Dimension of, int64_t width, std::string_view doc) {
    signature.push_back(rows_argument(p, name, ArgumentRole::kInput, std::move(of), width, doc));
  };
  add("q", query_rows(rows), p.attn_dim, "queries");
  add("k", key_rows(), p.attn_dim, "keys");
  add("v", key_rows(), p.hidden_dim, "values");
  if (direction == Direction::kBackward) add("dout", query_rows(rows), p.hidden_dim, "gradient of the result");
}

void add_sequences(const HstuAttentionParams& p, QueryRows rows, Signature& signature) {
  signature.push_back(offsets_argument("seq_offsets", p.offsets_dtype, kSequenceAxis));
  if (rows == QueryRows::kLastJagged) {
    signature.push_back(offsets_argument("seq_offsets_q", p.offsets_dtype, kQueryAxis,
                                         "first row of q of each sequence, then the number of rows of q"));
  }
}

void add_numbers(bool knows_positions, QueryRows rows, Signature& signature) {
  signature.push_back(max_seq_len_argument());
  if (knows_positions) signature.back().max = kMaxOwnMaskSeqLen;
  if (rows != QueryRows::kAll) {
    signature.push_back(
        max_rows_argument("max_delta_len", kQueryAxis,
                          rows == QueryRows::kLast ? "rows of q of every sequence" : "no sequence has more rows of q"));
  }
  signature.push_back(scalar_argument("alpha", ArgumentKind::kFloat, "factor of the dot products"));
  // The public packages say -1 where there is none.
  Argument scaling = integer_argument("scaling_seqlen", "divisor of P; max_seq_len when <= 0", kMaxSeqLen);
  scaling.min = -1;
  signature.push_back(std::move(scaling));
}

// As operators over rows have them.
void add_dropout(const HstuAttentionParams& p, Signature& signature) {
  if (!p.attn_dropout) return;
  signature.push_back(
      scalar_argument(std::string(kDropoutRatio), ArgumentKind::kFloat, "of the weights P that become 0"));
  signature.back().range = {0, 1};
  Argument seed =
      scalar_argument(p.attn_seed_tensor ? "seed_tensor" : "seed", ArgumentKind::kInt, "decides which ones");
  seed.semantic = Semantic::kSeed;
  if (p.attn_seed_tensor) {
    seed.kind = ArgumentKind::kTensor;
    seed.dtype = DataType::kInt64;
    seed.shape = {Dimension::constant(1)};
    seed.alignment = static_cast<int>(size_of(seed.dtype));
  }
  signature.push_back(std::move(seed));
  signature.push_back(scalar_argument("offset", ArgumentKind::kInt, "decides it, too: another one for each call"));
  signature.back().semantic = Semantic::kSeed;
}

void add_outputs(const HstuAttentionParams& p, QueryRows rows, Direction direction, Signature& signature) {
  const auto add = [&](const char* name, Dimension of, int64_t width, std::string_view doc) {
    signature.push_back(rows_argument(p, name, ArgumentRole::kOutput, std::move(of), width, doc));
  };
  if (direction == Direction::kForward) return add("out", query_rows(rows), p.hidden_dim, "result");
  add("dq", query_rows(rows), p.attn_dim, "gradient of the queries");
  add("dk", key_rows(), p.attn_dim, "gradient of the keys");
  add("dv", key_rows(), p.hidden_dim, "gradient of the values");
}

}  // namespace

AttentionSpec::AttentionSpec(HstuAttentionParams params, QueryRows query_rows)
    : params_(std::move(params)), query_rows_(query_rows), operands_(operands_of(params_)) {
  mask_reads_ = reading_mask_of(params_).has_value();
  score_reads_positions_ = score_reads_positions(params_);
  const bool has_sites = std::ranges::any_of(operands_, &Operand::has_sites);
  if (!mask_reads_ && !has_sites) return;
  const Result<Expression> score = parse_score(params_);
  shares_sites_ = has_sites && !params_.has_softmax_score() && score.ok() && sites_are_shared(*score, operands_);
  if (!mask_reads_) return;
  for (Operand& operand : operands_) operand.by_score = !operand.is_own() || score->depends_on(operand.name);
}

AttentionSpec::AttentionSpec(HstuAttentionParams params, QueryRows query_rows, const std::vector<Operand>& declared)
    : AttentionSpec(std::move(params), query_rows) {
  for (const Operand& operand : declared) operands_.push_back(operand);
}

bool AttentionSpec::knows_sequence() const {
  return mask_reads_ || std::ranges::any_of(operands_, [](const Operand& operand) {
           return operand.use == OperandUse::kScore &&
                  (operand.kind == &sequence_kind() || operand.kind == &pair_kind());
         });
}

std::string AttentionSpec::note() const {
  if (!mask_reads_) return {};
  const Expression mask = own_mask(params_);
  std::vector<std::string_view> names;
  for (const Operand& operand : operands_) {
    if (operand.is_own() && mask.symbol(operand.name) >= 0 && mask.depends_on(operand.name))
      names.push_back(operand.name);
  }
  return fmt::format("the mask reads {}, which no tile is bounded by: all tiles are partial that the rest of it allows",
                     fmt::join(names, ", "));
}

Signature AttentionSpec::signature(Direction direction) const {
  Signature signature;
  add_tensors(params_, query_rows_, direction, signature);
  add_sequences(params_, query_rows_, signature);
  const bool backward = direction == Direction::kBackward;
  for (const Operand& operand : operands_) signature.push_back(operand_argument(operand, query_rows_));
  if (backward && params_.adds_gradients) {
    for (const Operand& operand : operands_) {
      if (operand.gradient) signature.push_back(before_argument(operand, query_rows_));
    }
  }
  add_numbers(params_.has_own_mask() || score_reads_positions_, query_rows_, signature);
  add_dropout(params_, signature);
  add_outputs(params_, query_rows_, direction, signature);
  for (const Operand& operand : operands_) {
    if (backward && operand.gradient)
      signature.push_back(gradient_argument(operand, query_rows_, params_.adds_gradients));
  }
  return signature;
}

double AttentionSpec::error_bound(Direction direction) const {
  switch (params_.dtype) {
    case DataType::kFp32:
      return params_.precision == MatmulPrecision::kIeee ? 1e-5 : 1e-3;
    case DataType::kFp16:
      return 2e-3;
    default:
      return direction == Direction::kForward ? 6e-3 : 1e-2;
  }
}

// Among 2, 4 and 8 heads the winner of another number was at most 4 % slower in six keys; with one head it was up to 17
// % (docs/journal.md, 72). A bias has its own heads, which no timing has compared.
std::vector<OpSpec::TunedAlike> AttentionSpec::tuned_alike() const {
  std::vector<TunedAlike> alike;
  if (params_.adds_gradients) {  // by kernels that follow the one that is tuned
    nlohmann::ordered_json json = to_json();
    json.erase("adds_gradients");
    if (Result<OpSpecPtr> spec = parse_op_spec(json, ""); spec.ok())
      alike.push_back({*std::move(spec), "gradients not added to others"});
    return alike;
  }
  if (params_.attn_seed_tensor) {  // by kernels that differ in one load
    nlohmann::ordered_json json = to_json();
    json.erase("seed_tensor");
    if (Result<OpSpecPtr> spec = parse_op_spec(json, ""); spec.ok())
      alike.push_back({*std::move(spec), "the seed as a number"});
  }
  constexpr int64_t kMostHeads = 16;
  if (params_.heads < 2 || params_.heads > kMostHeads || params_.has_bias() || params_.has_softmax()) return alike;
  std::vector<int64_t> others = {2, 4, 8};
  std::erase(others, params_.heads);
  const auto distance = [&](int64_t heads) {
    return std::abs(std::log2(static_cast<double>(heads) / static_cast<double>(params_.heads)));
  };
  std::ranges::stable_sort(others, {}, distance);
  for (const int64_t heads : others) {
    nlohmann::ordered_json json = to_json();
    json["heads"] = heads;
    if (Result<OpSpecPtr> spec = parse_op_spec(json, ""); spec.ok())
      alike.push_back({*std::move(spec), std::to_string(heads) + " heads"});
  }
  return alike;
}

}  // namespace hstujit
