__device__ __forceinline__ bool mask_valid(int row, int col, int n, int t) {
  const int i0 = n - t;
  const bool b0 = col < i0 && i0 >= 6;
  return ((col <= row && (b0 || row == col)) || (row < 6 && b0)) && col < n;
}

__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, int t, bool& full, bool& visible) {
  const int i0 = n - t;
  const bool b0 = i0 >= 6;
  const bool b1 = c1 < i0 && b0;
  const bool b2 = c0 < i0 && b0;
  full = ((c1 <= r0 && (b1 || (r0 >= c1 && r1 <= c0))) || (r1 < 6 && b1)) && c1 < n;
  visible = ((c0 <= r1 && (b2 || (r0 <= c1 && r1 >= c0))) || (r0 < 6 && b2)) && c0 < n;
}

__device__ __forceinline__ void mask_columns(int r0, int r1, int n, int t, int& lo, int& hi) {
  const int i0 = r1 + 1;
  const int i1 = n - t;
  const bool b0 = i1 >= 6;
  const bool b1 = n > t;
  const int i2 = min(b0 && b1 ? 0 : n, r0);
  const bool b2 = max(i2, 0) < min(i0, n);
  const bool b3 = r0 < 6 && b0 && b1;
  lo = max(min(b2 ? i2 : n, b3 ? 0 : n), 0);
  hi = min(max(b2 ? i0 : 0, b3 ? i1 : 0), n);
}

__device__ __forceinline__ void mask_rows(int c0, int c1, int n, int t, int& lo, int& hi) {
  const int i0 = n - t;
  const bool b0 = c0 < i0 && i0 >= 6;
  const int i1 = max(b0 ? n : 0, c1 + 1);
  const bool b1 = max(c0, 0) < min(i1, n);
  lo = max(min(b1 ? c0 : n, b0 ? 0 : n), 0);
  hi = c0 < n ? min(max(b1 ? i1 : 0, b0 ? 6 : 0), n) : 0;
}

template <class At>
__device__ __forceinline__ float score(float x, const At&, const Params& params) {
  const float alpha = params.alpha;
  return max_nan(x * alpha, 0.0f);
}

template <class At>
__device__ __forceinline__ void score_grad(float x, const At&, const Params& params, float& y, float& dy) {
  const float alpha = params.alpha;
  const float s0 = x * alpha;
  y = max_nan(s0, 0.0f);
  dy = s0 <= 0.0f ? 0.0f : alpha;
}

