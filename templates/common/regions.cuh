// The region functions that templates call, declared so that an IDE can open a template on its own. Generated source
// does not have this file: it has the definitions, printed from the IR, of those functions that the template names, and
// they stand before the template (docs/generated-source.md).
#pragma once

// valid(row, column) for a sequence of n rows whose last t are targets
__device__ __forceinline__ bool mask_valid(int row, int col, int n, int t);

// Over rows [r0, r1] and columns [c0, c1], inclusive: full = every pair is valid, visible = at least one pair may be
// valid.
__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, int t, bool& full, bool& visible);

// Columns that rows [r0, r1] may see: [lo, hi), hi <= lo when there are none.
__device__ __forceinline__ void mask_columns(int r0, int r1, int n, int t, int& lo, int& hi);

// Rows that may see columns [c0, c1]: [lo, hi), hi <= lo when there are none.
__device__ __forceinline__ void mask_rows(int c0, int c1, int n, int t, int& lo, int& hi);

// score(alpha * x), x being the raw dot product of a row and a column.
__device__ __forceinline__ float score(float x, float alpha);

// The same as y, and its derivative with respect to x.
__device__ __forceinline__ void score_grad(float x, float alpha, float& y, float& dy);
