__device__ __forceinline__ bool mask_valid(int row, int col, int n, int t) {
  return col <= row && (row - col <= 256 || row >= n - 64) && col < n;
}

__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, int t, bool& full, bool& visible) {
  const int i0 = n - 64;
  full = c1 <= r0 && (r1 - c0 <= 256 || r0 >= i0) && c1 < n;
  visible = c0 <= r1 && (r0 - c1 <= 256 || r1 >= i0) && c0 < n;
}

__device__ __forceinline__ void mask_columns(int r0, int r1, int n, int t, int& lo, int& hi) {
  const int i0 = r0 - 256;
  const bool b0 = r1 >= n - 64;
  const bool b1 = i0 < n;
  lo = max(min(b1 ? i0 : n, b0 ? 0 : n), 0);
  hi = min(min(r1 + 1, max(b1 ? n : 0, b0 ? n : 0)), n);
}

__device__ __forceinline__ void mask_rows(int c0, int c1, int n, int t, int& lo, int& hi) {
  const int i0 = c1 + 257;
  const int i1 = n - 64;
  const bool b0 = i0 > 0;
  const bool b1 = i1 < n;
  lo = max(max(c0, min(b0 ? 0 : n, b1 ? i1 : n)), 0);
  hi = c0 < n ? min(max(b0 ? i0 : 0, b1 ? n : 0), n) : 0;
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

