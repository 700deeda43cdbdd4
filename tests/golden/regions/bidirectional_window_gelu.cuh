__device__ __forceinline__ bool mask_valid(int row, int col, int n, int t) {
  return abs(row - col) <= 128 && col < n;
}

__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, int t, bool& full, bool& visible) {
  full = max(c1 - r0, r1 - c0) <= 128 && c1 < n;
  visible = max(max(r0 - c1, c0 - r1), 0) <= 128 && c0 < n;
}

__device__ __forceinline__ void mask_columns(int r0, int r1, int n, int t, int& lo, int& hi) {
  lo = max(r0 - 128, 0);
  hi = min(r1 + 129, n);
}

__device__ __forceinline__ void mask_rows(int c0, int c1, int n, int t, int& lo, int& hi) {
  lo = max(c0 - 128, 0);
  hi = c0 < n ? min(c1 + 129, n) : 0;
}

template <class At>
__device__ __forceinline__ float score(float x, const At&, const Params& params) {
  const float alpha = params.alpha;
  const float s0 = x * alpha;
  const float s1 = s0 * 0.5f;
  return fmaf(s1, erff(s0 * 0.70710677f), s1);
}

template <class At>
__device__ __forceinline__ void score_grad(float x, const At&, const Params& params, float& y, float& dy) {
  const float alpha = params.alpha;
  const float s0 = x * alpha;
  const float s1 = s0 * 0.5f;
  const float s2 = alpha * 0.5f;
  const float s3 = s0 * 0.70710677f;
  const float s4 = erff(s3);
  y = fmaf(s1, s4, s1);
  dy = s4 * s2 + s1 * (fast_exp(-(s3 * s3)) * (alpha * 0.7978846f)) + s2;
}

