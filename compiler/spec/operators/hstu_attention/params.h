// Parameters of hstu_attention, which are also those of the operators that attend in the same way (attention_spec.h).
#pragma once

#include <optional>

#include "compiler/spec/field_rules.h"
#include "compiler/spec/fields_json.h"
#include "compiler/spec/limits.h"

namespace hstujit {

// The scores that have names, each of which is an expression (own_score.cpp), and what expressions may read.
inline constexpr std::string_view kHstuScores = "silu relu relu2 sigmoid tanh gelu identity";
inline constexpr std::string_view kScoreNames = "x row col n targets head heads alpha";

// What the tensor attn_scale has a factor for: there is none, every row of q, all of them together.
inline constexpr std::string_view kAttnScales = "none rows scalar";

// The most numbers that the tensor attn_func has for a row of q: 16 intervals.
inline constexpr int64_t kMaxIntervalEnds = 31;

inline constexpr std::string_view kAddsGradientsDoc =
    "backward takes drab_before and dattn_scale_before, and adds drab and dattn_scale to them: a sum over layers that "
    "share rab or attn_scale";

inline constexpr std::string_view kAttentionDropoutDoc =
    "launches take dropout_ratio, the part of the weights P that become 0, a seed and an offset";

struct HstuAttentionParams {
  int64_t heads = 1;                                   // H
  int64_t attn_dim = 0;                                // Dqk, per head
  int64_t hidden_dim = 0;                              // Dv, per head
  DataType dtype = DataType::kBf16;                    // of q, k, v, out
  MatmulPrecision precision = MatmulPrecision::kTf32;  // "precision"; fp32 data only, canonicalised to tf32 otherwise
  DataType offsets_dtype = DataType::kInt64;           // of seq_offsets, seq_offsets_q, num_targets and num_contexts
  int64_t alignment = 16;  // bytes; 2, 4, 8 or 16: what pointers and strides are multiples of
  bool causal = true;
  bool num_targets = false;  // takes a num_targets tensor
  int64_t target_group_size = 1;
  int64_t max_attn_len = 0;  // 0: no window
  int64_t min_full_attn_seq_len = 0;
  int64_t contextual_seq_len = 0;
  bool num_contexts = false;  // takes a num_contexts tensor in place of that number
  int64_t sla_k1 = 0;         // either > 0 switches semi-local attention on
  int64_t sla_k2 = 0;
  int64_t attn_func = 0;        // takes an attn_func tensor with so many numbers for each row of q; 0: none
  int64_t attn_func_heads = 0;  // heads of that tensor, a divisor of H
  bool full_mask = false;       // "no mask": every pair of a sequence is valid (causal=false, window -1)
  std::string mask = "";  // a condition of row, col, n and targets in place of the fields above (docs/expressions.md)
  std::string score = "silu";       // one of kHstuScores, or an expression of kScoreNames (docs/expressions.md)
  std::string operands = "";        // declarations of what these two read (operands/own_operands.h)
  int64_t num_softmax_heads = 0;    // the first heads, whose weights are the softmax of S over the row's valid columns
  std::string softmax_score = "";   // an expression as `score`, whose values these have in place of S; empty: S itself
  int64_t rab_heads = 0;            // heads Hr of the bias tensor rab, a divisor of H; 0: there is none
  std::string attn_scale = "none";  // one of kAttnScales
  // Which of their gradients backward returns; true where there is nothing to return.
  bool drab = true;
  bool dattn_scale = true;
  // Fields of hstu_attention alone.
  bool adds_gradients = false;    // backward adds those two to what the launch gives
  bool attn_dropout = false;      // "dropout": of P
  bool attn_seed_tensor = false;  // "seed_tensor": the seed of that is in the device's memory

  bool operator==(const HstuAttentionParams&) const = default;
  bool semi_local() const { return sla_k1 > 0 || sla_k2 > 0; }
  bool has_contexts() const { return num_contexts || contextual_seq_len > 0; }
  bool has_own_mask() const { return !mask.empty(); }
  bool has_intervals() const { return attn_func > 0; }  // the mask is what launches give
  bool has_softmax() const { return num_softmax_heads > 0; }
  bool is_softmax_head(int64_t head) const { return head < num_softmax_heads; }
  bool has_softmax_score() const { return !softmax_score.empty(); }

  // What operands are used for. A bias is added to the products, and heads share its heads evenly. Factors multiply the
  // rows of P in place of the scale: each row has its own, or all rows have one.
  bool has_bias() const { return rab_heads > 0; }
  int64_t bias_heads() const { return rab_heads; }
  bool has_factors() const { return attn_scale != "none"; }
  bool has_row_factors() const { return attn_scale == "rows"; }
  bool returns_dbias() const { return has_bias() && drab; }
  bool returns_dfactors() const { return has_factors() && dattn_scale; }

  static constexpr auto fields() {
    using P = HstuAttentionParams;
    return std::make_tuple(
        field("heads", &P::heads, "number of attention heads H", 1, 1024),
        field("attn_dim", &P::attn_dim, "head dimension of q and k", 1, 256),
        field("hidden_dim", &P::hidden_dim, "head dimension of v and out", 1, 256),
        field("dtype", &P::dtype, "data type of q, k, v and out").one_of("bf16 fp16 fp32"),
        field("precision", &P::precision, "matrix products of fp32 data").one_of("tf32 ieee"),
        field("offsets_dtype", &P::offsets_dtype, "type of offsets, num_targets and num_contexts")
            .one_of("int32 int64"),
        field("alignment", &P::alignment, "bytes that data pointers and strides are multiples of").one_of("2 4 8 16"),
        field("causal", &P::causal, "row i sees columns j <= i alone; contextual rows see the whole history"),
        field("num_targets", &P::num_targets,
              "launches take num_targets, how many of the last rows of each sequence are targets"),
        field("target_group_size", &P::target_group_size, "targets are in groups of this many rows", 1, kMaxSeqLen),
        field("max_attn_len", &P::max_attn_len,
              "window in ids, as window_size=(w, 0) of FlashAttention; 0 means none, -1 with causal=false no mask", -1,
              kMaxSeqLen),
        field("min_full_attn_seq_len", &P::min_full_attn_seq_len, "last ids of a sequence that ignore the window", 0,
              kMaxSeqLen),
        field("contextual_seq_len", &P::contextual_seq_len, "leading rows that see the whole history", 0, kMaxSeqLen),
        field("num_contexts", &P::num_contexts,
              "launches take num_contexts, how many of the first rows of each sequence see the whole history")
            .or_none(),
        field("sla_k1", &P::sla_k1, "semi-local attention: local part", 0, kMaxSeqLen),
        field("sla_k2", &P::sla_k2, "semi-local attention: global part", 0, kMaxSeqLen),
        field("attn_func", &P::attn_func,
              "launches take attn_func, which columns each row sees, as this many ends of intervals: an odd number; it "
              "replaces causal and all other fields of the mask; 0: none",
              0, kMaxIntervalEnds)
            .or_none(),
        field("attn_func_heads", &P::attn_func_heads,
              "heads of attn_func, a divisor of heads; 0: 1 where launches take it", 0, 1024)
            .or_none(),
        field("full_mask", &P::full_mask, "no mask: every pair of a sequence is valid"),
        field(
            "mask", &P::mask,
            "which pairs are valid, as a condition of row, col, n and targets, such as col <= row and row - col < 256; "
            "it replaces causal and all other fields of the mask")
            .or_none(),
        field("score", &P::score,
              "pointwise score function: a name, or an expression of x, row, col, n, targets, head, heads and alpha")
            .one_of(kHstuScores)
            .or_expression_of(kScoreNames),
        field("operands", &P::operands,
              "tensors that the score or the mask reads, as declarations such as ts: row(int64), by_age: table(129, "
              "grad)")
            .or_none(),
        field("num_softmax_heads", &P::num_softmax_heads,
              "so many of the first heads have softmax over the valid columns in place of score and scale", 0, 1024)
            .or_none(),
        field("softmax_score", &P::softmax_score,
              "what heads with softmax normalise, as an expression like score, such as x - 0.5 * (row - col); without "
              "it x")
            .or_none(),
        field("rab_heads", &P::rab_heads,
              "launches take a relative bias rab with this many heads, a divisor of heads; 0: none", 0, 1024),
        field("attn_scale", &P::attn_scale, "launches take attn_scale in place of the scale, with a factor for these")
            .one_of(kAttnScales),
        field("drab", &P::drab, "backward returns the gradient of rab"),
        field("dattn_scale", &P::dattn_scale, "backward returns the gradient of attn_scale"));
  }
};

// Adds what breaks the rules between fields. Single fields are taken to be within their bounds.
void check_hstu_attention(const HstuAttentionParams& params, const std::string& path, Mistakes& mistakes);

// Brings equal meanings of parameters that obey the rules to one form (docs/ops-attention.md, "Canonical form").
void make_canonical(HstuAttentionParams& params);

// The JSON spelling of "no mask" is causal=false with max_attn_len=-1; full_mask=true says the same, and then causal
// need not be given. Brings the one form to the other.
void spell_out_full_mask(Json& json, const std::string& path, Mistakes& mistakes);

// Reads and checks the parameters of an operator of the family: T is HstuAttentionParams, or derives from it and adds
// fields. Nothing where there are mistakes.
template <typename T>
std::optional<T> read_attention_params(Json json, const std::string& path, Mistakes& mistakes) {
  const size_t before = mistakes.count();
  T params;
  spell_out_full_mask(json, path, mistakes);
  const bool spelled_out = mistakes.count() == before;
  read_fields(json, path, params, mistakes, {"op"});
  const bool right =
      spelled_out && check_rules_between(field_slots(params), path, before, mistakes,
                                         [&](Mistakes& broken) { check_hstu_attention(params, path, broken); });
  if (!right || mistakes.count() != before) return std::nullopt;
  make_canonical(params);
  return params;
}

template <typename T>
Json attention_schema() {
  Json schema = fields_schema<T>();
  schema["properties"]["max_attn_len"]["description"] =
      "window in ids, as window_size=(w, 0) of FlashAttention; 0 means none, -1 together with causal=false means no "
      "mask at all";
  return schema;
}

// valid(i, j) of docs/ops-attention.md for a sequence of n rows with t targets, written from the text of that page. Its
// contexts are c where the instance takes num_contexts. Where a mask compares what it reads of operands, every such
// comparison that lets the pair be valid holds.
bool hstu_attention_valid(const HstuAttentionParams& params, int64_t i, int64_t j, int64_t n, int64_t t, int64_t c = 0);

// How many pairs of that sequence's rows from `first` on are valid, in O(n).
int64_t hstu_attention_valid_pairs(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t first = 0,
                                   int64_t c = 0);

}  // namespace hstujit
