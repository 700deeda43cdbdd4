__device__ __forceinline__ bool mask_valid(int row, int col, int n, int t) {
  const int i0 = max(n - t, 0);
  return ((row < i0 && col <= row && (col < 16 || col > row - 128)) || (row >= i0 && col < i0)) && col < n;
}

__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, int t, bool& full, bool& visible) {
  const int i0 = max(n - t, 0);
  full = ((r1 < i0 && c1 <= r0 && (c1 < 16 || c0 > r1 - 128)) || (r0 >= i0 && c1 < i0)) && c1 < n;
  visible = ((r0 < i0 && c0 <= r1 && (c0 < 16 || c1 > r0 - 128)) || (r1 >= i0 && c0 < i0)) && c0 < n;
}

__device__ __forceinline__ void mask_columns(int r0, int r1, int n, int t, int& lo, int& hi) {
  const int i0 = max(n - t, 0);
  const int i1 = r0 - 127;
  const bool b0 = i1 < n;
  const int i2 = min(r1 + 1, max(b0 ? n : 0, 16));
  const bool b1 = r0 < i0 && min(i2, n) > 0;
  const bool b2 = r1 >= i0 && i0 > 0;
  lo = max(min(b1 ? min(b0 ? i1 : n, 0) : n, b2 ? 0 : n), 0);
  hi = min(max(b1 ? i2 : 0, b2 ? i0 : 0), n);
}

__device__ __forceinline__ void mask_rows(int c0, int c1, int n, int t, int& lo, int& hi) {
  const int i0 = max(n - t, 0);
  const bool b0 = c0 < 16;
  const int i1 = c1 + 128;
  const bool b1 = i1 > 0;
  const int i2 = max(c0, min(b0 ? 0 : n, b1 ? 0 : n));
  const int i3 = min(i0, max(b0 ? n : 0, b1 ? i1 : 0));
  const bool b2 = max(i2, 0) < min(i3, n);
  const bool b3 = c0 < i0 && i0 < n;
  lo = max(min(b2 ? i2 : n, b3 ? i0 : n), 0);
  hi = c0 < n ? min(max(b2 ? i3 : 0, b3 ? n : 0), n) : 0;
}

template <class At>
__device__ __forceinline__ float score(float x, const At&, const Params& params) {
  const float alpha = params.alpha;
  return fmaf(0.5f, fast_tanh(x * (alpha * 0.5f)), 0.5f);
}

template <class At>
__device__ __forceinline__ void score_grad(float x, const At&, const Params& params, float& y, float& dy) {
  const float alpha = params.alpha;
  const float s0 = alpha * 0.5f;
  const float t0 = fast_tanh(x * s0);
  y = fmaf(0.5f, t0, 0.5f);
  dy = fmaf(-t0, t0, 1.0f) * (s0 * 0.5f);
}

