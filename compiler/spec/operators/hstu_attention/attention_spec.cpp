#include "compiler/spec/operators/hstu_attention/attention_spec.h"

#include <limits>

#include "compiler/spec/sequence_rows.h"

namespace hstujit {

Signature AttentionSpec::signature(Direction direction) const {
  const bool forward = direction == Direction::kForward;
  const auto& p = params_;
  const Dimension rows = Dimension::jagged(std::string(kSequenceAxis), "seq_offsets");
  const Dimension query_rows = query_rows_ == QueryRows::kAll ? rows
                               : query_rows_ == QueryRows::kLast
                                   ? Dimension::uniform("max_delta_len")
                                   : Dimension::jagged(std::string(kQueryAxis), "seq_offsets_q");
  const auto data = [&](const char* name, ArgumentRole role, const Dimension& length, int64_t width,
                        std::string_view doc) {
    return Argument{name,
                    ArgumentKind::kTensor,
                    role,
                    p.dtype,
                    {length, Dimension::constant(p.heads), Dimension::constant(width)},
                    static_cast<int>(p.alignment),
                    doc};
  };
  const auto integers = [&](const char* name, Dimension size, Semantic semantic, std::string_view axis,
                            std::string_view doc) {
    return Argument{name,
                    ArgumentKind::kTensor,
                    ArgumentRole::kInput,
                    p.offsets_dtype,
                    {std::move(size)},
                    static_cast<int>(size_of(p.offsets_dtype)),
                    doc,
                    std::numeric_limits<int64_t>::max(),
                    semantic,
                    std::string(axis)};
  };
  const auto bias = [&](const char* name, ArgumentRole role, std::string_view doc) {
    Argument argument = data(name, role, Dimension::of("B"), 0, doc);
    const Dimension positions = Dimension::scalar("max_seq_len");
    argument.shape = {Dimension::of("B"), Dimension::constant(p.rab_heads), positions, positions};
    return argument;
  };
  const auto factors = [&](const char* name, ArgumentRole role, std::string_view doc) {
    const bool of_rows = p.attn_scale == "rows";
    Argument argument{name, ArgumentKind::kTensor, role, DataType::kFp32, {}, static_cast<int>(sizeof(float)), doc};
    argument.shape = {of_rows ? query_rows : Dimension::constant(1)};
    argument.accumulated = role == ArgumentRole::kOutput && !of_rows;
    return argument;
  };
  const auto max_rows = [](const char* name, std::string_view axis, std::string_view doc) {
    Argument argument;
    argument.name = name;
    argument.kind = ArgumentKind::kInt;
    argument.doc = doc;
    argument.min = 0;
    argument.max = kMaxSeqLen;
    argument.semantic = Semantic::kMaxRows;
    argument.axis = axis;
    return argument;
  };
  const auto scalar = [](const char* name, ArgumentKind kind, std::string_view doc) {
    Argument argument;
    argument.name = name;
    argument.kind = kind;
    argument.doc = doc;
    return argument;
  };
  Signature signature = {data("q", ArgumentRole::kInput, query_rows, p.attn_dim, "queries"),
                         data("k", ArgumentRole::kInput, rows, p.attn_dim, "keys"),
                         data("v", ArgumentRole::kInput, rows, p.hidden_dim, "values")};
  if (!forward)
    signature.push_back(data("dout", ArgumentRole::kInput, query_rows, p.hidden_dim, "gradient of the result"));
  signature.push_back(integers("seq_offsets", Dimension::of("B", 1), Semantic::kOffsets, kSequenceAxis,
                               "first row of each sequence, then the number of rows"));
  if (query_rows_ == QueryRows::kLastJagged) {
    signature.push_back(integers("seq_offsets_q", Dimension::of("B", 1), Semantic::kOffsets, kQueryAxis,
                                 "first row of q of each sequence, then the number of rows of q"));
  }
  if (p.num_targets)
    signature.push_back(integers("num_targets", Dimension::of("B"), Semantic::kCounts, kSequenceAxis,
                                 "targets at the end of each sequence"));
  if (p.has_rab()) signature.push_back(bias("rab", ArgumentRole::kInput, "relative bias of the dot products"));
  if (p.has_attn_scale())
    signature.push_back(factors("attn_scale", ArgumentRole::kInput,
                                "factor of each row of P, behind the score function, in place of the scale"));
  signature.push_back(max_rows("max_seq_len", kSequenceAxis, "no sequence is longer"));
  if (query_rows_ != QueryRows::kAll) {
    signature.push_back(
        max_rows("max_delta_len", kQueryAxis,
                 query_rows_ == QueryRows::kLast ? "rows of q of every sequence" : "no sequence has more rows of q"));
  }
  signature.push_back(scalar("alpha", ArgumentKind::kFloat, "factor of the dot products"));
  signature.push_back(scalar("scaling_seqlen", ArgumentKind::kInt, "divisor of P; max_seq_len when <= 0"));
  if (forward) {
    signature.push_back(data("out", ArgumentRole::kOutput, query_rows, p.hidden_dim, "result"));
  } else {
    signature.push_back(data("dq", ArgumentRole::kOutput, query_rows, p.attn_dim, "gradient of the queries"));
    signature.push_back(data("dk", ArgumentRole::kOutput, rows, p.attn_dim, "gradient of the keys"));
    signature.push_back(data("dv", ArgumentRole::kOutput, rows, p.hidden_dim, "gradient of the values"));
    if (p.has_rab() && p.drab) signature.push_back(bias("drab", ArgumentRole::kOutput, "gradient of the bias"));
    if (p.has_attn_scale() && p.dattn_scale)
      signature.push_back(factors("dattn_scale", ArgumentRole::kOutput, "gradient of the factors of the rows of P"));
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

}  // namespace hstujit
