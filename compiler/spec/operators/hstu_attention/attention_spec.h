// Common base of hstu_attention and delta_hstu_attention: every template, the IR and the host backend take this.
#pragma once

#include "compiler/spec/op_spec.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "compiler/spec/operators/hstu_attention/params.h"
#include "compiler/spec/operators/hstu_attention/query_rows.h"

namespace hstujit {

// Arguments of a forward launch, in signature order, with Lq rows of q: q (Lq,H,Dqk), k (L,H,Dqk), v (L,H,Dv),
// seq_offsets (B+1), [seq_offsets_q (B+1) for kLastJagged], the operands (operands/operand.h), max_seq_len (int),
// [max_delta_len (int) unless kAll], alpha (float), scaling_seqlen (int, <= 0 means max_seq_len; not used where an
// operand has the factors of rows), [dropout_ratio (float), seed (int) or seed_tensor (1), offset (int)], out
// (Lq,H,Dv). Lq is L for kAll and B * max_delta_len for kLast.
//
// Arguments of a backward launch: q, k, v, dout (as out), then as forward up to out, then dq, dk, dv and the gradients
// of operands, with the shapes of what they are gradients of. Rows of k and v that no row of q sees have gradients of
// zero. With params().adds_gradients, what those are added to follows the operands, with the same shapes and maybe
// memory.
class AttentionSpec : public OpSpec {
 public:
  // With the operands that the parameters ask for, and those that are `declared` beside them.
  AttentionSpec(HstuAttentionParams params, QueryRows query_rows);
  AttentionSpec(HstuAttentionParams params, QueryRows query_rows, const std::vector<Operand>& declared);

  const HstuAttentionParams& params() const { return params_; }
  QueryRows query_rows() const { return query_rows_; }
  const std::vector<Operand>& operands() const { return operands_; }
  const Operand* operand(OperandUse use) const { return find_operand(operands_, use); }
  // Whether kernels know a sequence by its number in the batch, and whether they have that or the number of its
  // contexts beside the number of its targets.
  bool knows_sequence() const;
  bool mask_reads() const { return mask_reads_; }      // whether the mask reads operands
  bool shares_sites() const { return shares_sites_; }  // sites_are_shared() of score_sites.h
  bool takes_counts() const { return params_.num_contexts || (knows_sequence() && !params_.has_intervals()); }

  Family family() const override { return Family::kAttention; }
  bool supports(Direction) const override { return true; }
  // Forward, where q has all rows: kernels for few rows of q serve batches of any size.
  int64_t small_batch_heads(Direction direction) const override {
    return direction == Direction::kForward && query_rows_ == QueryRows::kAll ? params_.heads : 0;
  }
  std::vector<TunedAlike> tuned_alike() const override;
  std::string note() const override;
  Signature signature(Direction direction) const override;
  Work work(Direction direction, const Lengths& lengths) const override;
  double error_bound(Direction direction) const override;

 private:
  HstuAttentionParams params_;
  QueryRows query_rows_;
  std::vector<Operand> operands_;
  bool mask_reads_ = false, shares_sites_ = false, score_reads_positions_ = false;
};

}  // namespace hstujit
