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

template <class At>
__device__ __forceinline__ float score(float x, const At&, const Params& params) {
  const float alpha = params.alpha;
  const float s0 = max_nan(x * alpha, 0.0f);
  return s0 * s0;
}

template <class At>
__device__ __forceinline__ void score_grad(float x, const At&, const Params& params, float& y, float& dy) {
  const float alpha = params.alpha;
  const float s0 = x * alpha;
  const float s1 = max_nan(s0, 0.0f);
  y = s1 * s1;
  dy = s1 * 2.0f * (s0 <= 0.0f ? 0.0f : alpha);
}

