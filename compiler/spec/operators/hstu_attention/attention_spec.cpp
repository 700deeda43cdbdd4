#include "compiler/spec/operators/hstu_attention/attention_spec.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/spec/limits.h"
#include "compiler/spec/operators/hstu_attention/own_mask.h"
#include "compiler/spec/sequence_arguments.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

Dimension key_rows() { return Dimension::jagged(std::string(kSequenceAxis), "seq_offsets"); }

Dimension rows_of_q(QueryRows rows) {
  switch (rows) {
    case QueryRows::kAll:
      return key_rows();
    case QueryRows::kLast:
      return Dimension::uniform("max_delta_len");
    case QueryRows::kLastJagged:
      break;
  }
  return Dimension::jagged(std::string(kQueryAxis), "seq_offsets_q");
}

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

Argument bias_argument(const HstuAttentionParams& params, const char* name, ArgumentRole role, std::string_view doc) {
  const Dimension positions = Dimension::scalar("max_seq_len");
  Argument argument = rows_argument(params, name, role, {}, 0, doc);
  argument.shape = {Dimension::of("B"), Dimension::constant(params.rab_heads), positions, positions};
  return argument;
}

// Of the rows of P, or one of all.
Argument factors_argument(const HstuAttentionParams& params, const char* name, ArgumentRole role, Dimension rows,
                          std::string_view doc) {
  const bool of_rows = params.attn_scale == "rows";
  Argument argument;
  argument.name = name;
  argument.role = role;
  argument.dtype = DataType::kFp32;
  argument.shape = {of_rows ? std::move(rows) : Dimension::constant(1)};
  argument.alignment = static_cast<int>(sizeof(float));
  argument.doc = doc;
  argument.accumulated = role == ArgumentRole::kOutput && !of_rows;
  return argument;
}

void add_tensors(const HstuAttentionParams& p, QueryRows rows, Direction direction, Signature& signature) {
  const auto add = [&](const char* name, Dimension of, int64_t width, std::string_view doc) {
    signature.push_back(rows_argument(p, name, ArgumentRole::kInput, std::move(of), width, doc));
  };
  add("q", rows_of_q(rows), p.attn_dim, "queries");
  add("k", key_rows(), p.attn_dim, "keys");
  add("v", key_rows(), p.hidden_dim, "values");
  if (direction == Direction::kBackward) add("dout", rows_of_q(rows), p.hidden_dim, "gradient of the result");
}

void add_sequences(const HstuAttentionParams& p, QueryRows rows, Signature& signature) {
  signature.push_back(offsets_argument("seq_offsets", p.offsets_dtype, kSequenceAxis));
  if (rows == QueryRows::kLastJagged) {
    signature.push_back(offsets_argument("seq_offsets_q", p.offsets_dtype, kQueryAxis,
                                         "first row of q of each sequence, then the number of rows of q"));
  }
  if (p.num_targets) {
    signature.push_back(
        counts_argument("num_targets", p.offsets_dtype, kSequenceAxis, "targets at the end of each sequence"));
  }
}

void add_score_inputs(const HstuAttentionParams& p, QueryRows rows, Signature& signature) {
  if (p.has_rab())
    signature.push_back(bias_argument(p, "rab", ArgumentRole::kInput, "relative bias of the dot products"));
  if (p.has_attn_scale()) {
    signature.push_back(factors_argument(p, "attn_scale", ArgumentRole::kInput, rows_of_q(rows),
                                         "factor of each row of P, behind the score function, in place of the scale"));
  }
}

void add_sums_before(const HstuAttentionParams& p, QueryRows rows, Signature& signature) {
  if (p.returns_drab())
    signature.push_back(bias_argument(p, "drab_before", ArgumentRole::kInput, "what drab is added to"));
  if (p.returns_dattn_scale()) {
    signature.push_back(factors_argument(p, "dattn_scale_before", ArgumentRole::kInput, rows_of_q(rows),
                                         "what dattn_scale is added to"));
  }
}

void add_numbers(const HstuAttentionParams& p, QueryRows rows, Signature& signature) {
  signature.push_back(max_seq_len_argument());
  if (p.has_own_mask()) signature.back().max = kMaxOwnMaskSeqLen;
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

void add_outputs(const HstuAttentionParams& p, QueryRows rows, Direction direction, Signature& signature) {
  const auto add = [&](const char* name, Dimension of, int64_t width, std::string_view doc) {
    signature.push_back(rows_argument(p, name, ArgumentRole::kOutput, std::move(of), width, doc));
  };
  if (direction == Direction::kForward) return add("out", rows_of_q(rows), p.hidden_dim, "result");
  add("dq", rows_of_q(rows), p.attn_dim, "gradient of the queries");
  add("dk", key_rows(), p.attn_dim, "gradient of the keys");
  add("dv", key_rows(), p.hidden_dim, "gradient of the values");
  if (p.returns_drab()) {
    signature.push_back(bias_argument(p, "drab", ArgumentRole::kOutput, "gradient of the bias"));
    if (p.adds_gradients) signature.back().in_place = "drab_before";
  }
  if (p.returns_dattn_scale()) {
    signature.push_back(factors_argument(p, "dattn_scale", ArgumentRole::kOutput, rows_of_q(rows),
                                         "gradient of the factors of the rows of P"));
    if (p.adds_gradients) signature.back().in_place = "dattn_scale_before";
  }
}

}  // namespace

Signature AttentionSpec::signature(Direction direction) const {
  Signature signature;
  add_tensors(params_, query_rows_, direction, signature);
  add_sequences(params_, query_rows_, signature);
  add_score_inputs(params_, query_rows_, signature);
  if (params_.adds_gradients && direction == Direction::kBackward) add_sums_before(params_, query_rows_, signature);
  add_numbers(params_, query_rows_, signature);
  add_outputs(params_, query_rows_, direction, signature);
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
      alike.push_back({*std::move(spec), "drab and dattn_scale not added to others"});
    return alike;
  }
  constexpr int64_t kMostHeads = 16;
  if (params_.heads < 2 || params_.heads > kMostHeads || params_.has_rab()) return alike;
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
