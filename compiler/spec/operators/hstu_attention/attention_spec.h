// What hstu_attention and delta_hstu_attention have in common: every template, the IR and the host backend take this.
#pragma once

#include "compiler/spec/op_spec.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// Which rows of a sequence q and out hold.
enum class QueryRows {
  kAll,
  kLast,        // the last ones, as many of each sequence: max_delta_len
  kLastJagged,  // the last ones, as many as seq_offsets_q says, at most max_delta_len
};

// Arguments of a forward launch, in signature order, with Lq rows of q: q (Lq,H,Dqk), k (L,H,Dqk), v (L,H,Dv),
// seq_offsets (B+1), [seq_offsets_q (B+1) for kLastJagged], [num_targets (B) when params().num_targets], [rab
// (B,Hr,max_seq_len,max_seq_len) when params().rab_heads = Hr > 0], [attn_scale (Lq) or (1), fp32, unless
// params().attn_scale is none], max_seq_len (int), [max_delta_len (int) unless kAll], alpha (float), scaling_seqlen
// (int, <= 0 means max_seq_len; not used with attn_scale), out (Lq,H,Dv). Lq is L for kAll and B * max_delta_len for
// kLast.
//
// Of a backward launch, which only kAll has: q, k, v, dout (as out), seq_offsets, [num_targets], [rab], [attn_scale],
// max_seq_len, alpha, scaling_seqlen, then dq, dk, dv, [drab], [dattn_scale], with the shapes of q, k, v, rab,
// attn_scale. With params().adds_gradients, drab_before and dattn_scale_before follow attn_scale, with the shapes of
// the outputs that are added to them and may lie in them.
class AttentionSpec : public OpSpec {
 public:
  AttentionSpec(HstuAttentionParams params, QueryRows query_rows)
      : params_(std::move(params)), query_rows_(query_rows) {}

  const HstuAttentionParams& params() const { return params_; }
  QueryRows query_rows() const { return query_rows_; }

  Family family() const override { return Family::kAttention; }
  bool supports(Direction direction) const override {
    return direction == Direction::kForward || query_rows_ == QueryRows::kAll;
  }
  // Forward, where q has all rows: kernels for few rows of q serve batches of any size.
  int64_t small_batch_heads(Direction direction) const override {
    return direction == Direction::kForward && query_rows_ == QueryRows::kAll ? params_.heads : 0;
  }
  std::vector<TunedAlike> tuned_alike() const override;
  Signature signature(Direction direction) const override;
  Work work(Direction direction, const Lengths& lengths) const override;
  std::vector<HostValue> make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const override;
  void reference(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const override;
  double error_bound(Direction direction) const override;
  std::vector<std::vector<double>> error_variances(Direction direction, const std::vector<HostValue>& inputs,
                                                   const std::vector<bool>& sequences) const override;

 private:
  HstuAttentionParams params_;
  QueryRows query_rows_;
};

}  // namespace hstujit
