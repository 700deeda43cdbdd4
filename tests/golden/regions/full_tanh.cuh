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
  return fast_tanh(x * alpha);
}

template <class At>
__device__ __forceinline__ void score_grad(float x, const At&, const Params& params, float& y, float& dy) {
  const float alpha = params.alpha;
  const float t0 = fast_tanh(x * alpha);
  y = t0;
  dy = fmaf(-t0, t0, 1.0f) * alpha;
}

