__device__ __forceinline__ bool mask_valid(int row, int col, int n, int t) {
  return col < n;
}

__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, int t, bool& full, bool& visible) {
  full = c1 < n;
  visible = c0 < n;
}

__device__ __forceinline__ void mask_columns(int r0, int r1, int n, int t, int& lo, int& hi) {
  lo = 0;
  hi = n;
}

__device__ __forceinline__ void mask_rows(int c0, int c1, int n, int t, int& lo, int& hi) {
  lo = 0;
  hi = c0 < n ? n : 0;
}

__device__ __forceinline__ float score(float x, float alpha) {
  return fast_tanh(x * alpha);
}

__device__ __forceinline__ void score_grad(float x, float alpha, float& y, float& dy) {
  const float t0 = fast_tanh(x * alpha);
  y = t0;
  dy = fmaf(-t0, t0, 1.0f) * alpha;
}

