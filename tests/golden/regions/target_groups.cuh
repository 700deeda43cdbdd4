__device__ __forceinline__ bool mask_valid(int row, int col, int n, int t) {
  const int i0 = n - t;
  const bool b0 = col <= row;
  return b0 && (col < i0 || (col >= min(max(row - i0, 0) / 4 * 4 + i0, row) && b0)) && col < n;
}

__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, int t, bool& full, bool& visible) {
  const bool b0 = c1 <= r0;
  const bool b1 = c0 <= r1;
  const int i0 = n - t;
  full = b0 && (c1 < i0 || (c0 >= min(max(r1 - i0, 0) / 4 * 4 + i0, r1) && b0)) && c1 < n;
  visible = b1 && (c0 < i0 || (c1 >= min(max(r0 - i0, 0) / 4 * 4 + i0, r0) && b1)) && c0 < n;
}

__device__ __forceinline__ void mask_columns(int r0, int r1, int n, int t, int& lo, int& hi) {
  const int i0 = r1 + 1;
  const int i1 = n - t;
  const int i2 = min(max(r0 - i1, 0) / 4 * 4 + i1, r0);
  const bool b0 = n > t;
  const bool b1 = max(i2, 0) < min(i0, n);
  lo = max(min(b0 ? 0 : n, b1 ? i2 : n), 0);
  hi = min(min(i0, max(b0 ? i1 : 0, b1 ? i0 : 0)), n);
}

__device__ __forceinline__ void mask_rows(int c0, int c1, int n, int t, int& lo, int& hi) {
  const int i0 = n - t;
  const bool b0 = c0 < i0;
  const int i1 = floor_div(c1 - i0, 4);
  const int i2 = i1 * 4;
  const int i3 = i1 >= 0 ? i2 + 3 : i2;
  const int i4 = i3 + i0 + 1;
  const int i5 = c1 + 1;
  const bool b1 = i3 >= 0 && i4 > 0;
  const bool b2 = i5 > 0;
  const int i6 = max(b1 ? i4 : 0, b2 ? i5 : 0);
  const int i7 = max(min(b1 ? 0 : n, b2 ? 0 : n), c0);
  const bool b3 = max(i7, 0) < min(i6, n);
  lo = max(max(c0, min(b0 ? 0 : n, b3 ? i7 : n)), 0);
  hi = c0 < n ? min(max(b0 ? n : 0, b3 ? i6 : 0), n) : 0;
}

template <class At>
__device__ __forceinline__ float score(float x, const At&, const Params& params) {
  const float alpha = params.alpha;
  const float s0 = x * (alpha * 0.5f);
  return fmaf(s0, fast_tanh(s0), s0);
}

template <class At>
__device__ __forceinline__ void score_grad(float x, const At&, const Params& params, float& y, float& dy) {
  const float alpha = params.alpha;
  const float s0 = alpha * 0.5f;
  const float s1 = x * s0;
  const float t0 = fast_tanh(s1);
  y = fmaf(s1, t0, s1);
  dy = fmaf(s0, fmaf(s1, fmaf(-t0, t0, 1.0f), t0), s0);
}

