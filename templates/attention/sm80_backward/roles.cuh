// hstu_attention backward on Ampere and Ada: which tensors a CTA owns, which pass by, and which gradients it has.
#pragma once
#include "attention/sm80/moving_tiles.cuh"

namespace sm80 {

// The mask as a tile of columns sees it: rows pass by. It asks of columns alone that they lie within the sequence; rows
// that do not are for the caller to leave out.
struct ColumnsView {
  static constexpr bool kRows = false;

  static __device__ __forceinline__ void range(int own0, int own1, const Sequence& s, int& begin, int& end) {
    mask_rows(own0, own1, s.rows, s.targets, begin, end);
  }
  static __device__ __forceinline__ void tile(int own0, int own1, int other0, int other1, const Sequence& s, bool& full,
                                              bool& visible) {
    mask_tile(other0, other1, own0, own1, s.rows, s.targets, full, visible);
  }
  static __device__ __forceinline__ Pair pair(int own, int other, const Sequence& s, int head) {
    return {other, own, s.rows, s.targets, head, s.start};
  }
  static __device__ __forceinline__ bool valid(int own, int other, const Sequence& s) {
    return mask_valid(other, own, s.rows, s.targets);
  }
};

// A tensor as (row, head, column).
struct TensorRef {
  const void* data;
  i64 row_stride, head_stride;  // in elements
};

// Roles of a CTA: which tensors it owns, which pass by, and where its sums go. "attn" are tensors with the columns of q
// and k, "hidden" those with the columns of v and dout. In the letters of kernel.cuh:
//
//   role            a (own attn)  b (own hidden)  x (other attn)  y (other hidden)  sums
//   OfQ             q             dout            k               v                 dq
//   OfKAndV         k             v               q               dout              dk and dv, or one of them
//
// kAttnGradient: it sums dq or dk, for which alone dP is needed, and so b.
struct OfQ {
  using View = RowsView;
  static constexpr bool kRows = true;
  static constexpr bool kAttnGradient = true, kHiddenGradient = false;

  template <class P>
  static __device__ __forceinline__ TensorRef own_attn(const P& p) {
    return {p.q, p.q_row_stride, p.q_head_stride};
  }
  template <class P>
  static __device__ __forceinline__ TensorRef own_hidden(const P& p) {
    return {p.dout, p.dout_row_stride, p.dout_head_stride};
  }
  template <class P>
  static __device__ __forceinline__ TensorRef other_attn(const P& p) {
    return {p.k, p.k_row_stride, p.k_head_stride};
  }
  template <class P>
  static __device__ __forceinline__ TensorRef other_hidden(const P& p) {
    return {p.v, p.v_row_stride, p.v_head_stride};
  }
  template <class P>
  static __device__ __forceinline__ TensorRef attn_gradient(const P& p) {
    return {p.dq, p.dq_row_stride, p.dq_head_stride};
  }
};

template <bool kK, bool kV>
struct OfKAndV {
  using View = ColumnsView;
  static constexpr bool kRows = false;
  static constexpr bool kAttnGradient = kK, kHiddenGradient = kV;

  template <class P>
  static __device__ __forceinline__ TensorRef own_attn(const P& p) {
    return OfQ::other_attn(p);
  }
  template <class P>
  static __device__ __forceinline__ TensorRef own_hidden(const P& p) {
    return OfQ::other_hidden(p);
  }
  template <class P>
  static __device__ __forceinline__ TensorRef other_attn(const P& p) {
    return OfQ::own_attn(p);
  }
  template <class P>
  static __device__ __forceinline__ TensorRef other_hidden(const P& p) {
    return OfQ::own_hidden(p);
  }
  template <class P>
  static __device__ __forceinline__ TensorRef attn_gradient(const P& p) {
    return {p.dk, p.dk_row_stride, p.dk_head_stride};
  }
  template <class P>
  static __device__ __forceinline__ TensorRef hidden_gradient(const P& p) {
    return {p.dv, p.dv_row_stride, p.dv_head_stride};
  }
};

}  // namespace sm80
