// Attention backward for Ampere and Ada (sm_80 and later): cp.async pipeline, mma.sync, one launch, no atomic
// additions.
//
// A CTA either owns a tile of rows, q and dout, past which tiles of k and v move, and sums dq; or it owns a
// tile of columns, k and v, past which the q and dout of rows move that see them, and sums dk and dv. Both compute the
// scores anew and nobody waits for another: the result is the same to the bit in every run. With (a, b) for what is
// owned, (x, y) for what passes, both kinds are
//
//   S = a x^T, dP = b y^T, P = score(S), dS = dP * score'(S) under the mask, da += dS x, db += P y (columns only)
//
// in chunks and in registers as forward does it. Where q has the last rows of a sequence alone, tiles of rows begin at
// the first of those, and no others pass by. Where the sums of dk and dv are more than a thread's registers hold,
// there are CTAs for dk and others for dv. Formulas: docs/ops-attention.md.
// Generated around it: see docs/generated-source.md.
#pragma once
#include "attention/operands/gradients/kernels.cuh"
#include "attention/operands/gradients/pairs.cuh"         // where kOfPair
#include "attention/operands/gradients/rows.cuh"          // where kByColumn
#include "attention/operands/gradients/sequences.cuh"     // where kOfSequence
#include "attention/operands/gradients/softmax_rows.cuh"  // where kNumSoftmaxHeads
#include "attention/operands/gradients/tables.cuh"        // where ScoreSites
#include "attention/sm80_backward/worker.cuh"

namespace sm80 {

// The tile of rows (of columns) from `own0` on, as a CTA of this role owns it.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void run_role(const Params& params, u32 shared, const Sequence& sequence,
                                         const CtaPlace& place, int role, int own0) {
  if (role == 0) {
    BackwardWorker<Spec, Config, Params, OfQ>(params, shared, sequence, place, own0).run();
  } else if constexpr (Config::kRoles == 2) {
    BackwardWorker<Spec, Config, Params, OfKAndV<true, true>>(params, shared, sequence, place, own0).run();
  } else if (role == 1) {
    BackwardWorker<Spec, Config, Params, OfKAndV<true, false>>(params, shared, sequence, place, own0).run();
  } else {
    BackwardWorker<Spec, Config, Params, OfKAndV<false, true>>(params, shared, sequence, place, own0).run();
  }
}

}  // namespace sm80

// "grid": one CTA per (role, tile, sequence, head), the tiles first that are the longest under a causal mask: the last
// ones of rows and the first ones of columns. CTAs past a sequence's end leave at once. "per_sequence": one CTA per
// (role, sequence, head), for batches of thousands of short sequences; those of one follow one another, since they read
// the same rows.
#ifdef kNumSoftmaxHeads
// Follows the kernel of softmax_rows.cuh, which is kernel_main.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void attention_gradients(const Params& params) {
#else
template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
#endif
  using namespace sm80;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  static_assert(sizeof(BackwardShared<Spec, Config>) == Config::kSharedBytes,
                "the host side and the template disagree on shared memory");

  const CtaPlace place = cta_place<Spec, Config, Config::kRoles>(params);
#ifdef kAttnFunc
  Sequence sequence = sequence_of<Spec, Config>(params, place.sequence);
  sequence.targets = intervals_of<Spec>(params, sequence, place.head);
#else
  const Sequence sequence = sequence_of<Spec, Config>(params, place.sequence);
#endif
  const u32 shared = shared_address(shared_bytes);
  if constexpr (Config::kSchedulePerSequence) {
    for_each_tile<Config::kBlockM>(
        sequence.rows, [&](int own0) { run_role<Spec, Config>(params, shared, sequence, place, place.rest, own0); });
  } else {
    const int role = place.rest % Config::kRoles, index = place.rest / Config::kRoles;
    const int tile = role == 0 ? ceil_div(max_sequence_rows<Config>(params), Config::kBlockM) - 1 - index : index;
    if constexpr (Config::kDelta) {
      if (role == 0 && tile == 0)
        clear_rows_before<Spec::kAttnDim>(sequence, params.dq + place.head * params.dq_head_stride,
                                          params.dq_row_stride);
    }
    const int own0 = (role == 0 ? first_query_row(sequence) : 0) + tile * Config::kBlockM;
    if (own0 >= sequence.rows) return;
    run_role<Spec, Config>(params, shared, sequence, place, role, own0);
  }
}
