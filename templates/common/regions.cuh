// The region functions that templates call, declared so that an IDE can open a template on its own. Generated source
// does not have this file: it has the definitions, printed from the IR, of those functions that the template names, and
// they stand before the template (docs/generated-source.md).
#pragma once

// What a sequence has beside its rows: generated source has `int` in place of this word, or `SequenceCounts`, which the
// functions of the mask take in place of t then.
using Num = int;

// valid(row, column) for a sequence of n rows whose last t are targets
__device__ __forceinline__ bool mask_valid(int row, int col, int n, int t);

// Over rows [r0, r1] and columns [c0, c1], inclusive: full = every pair is valid, visible = at least one pair may be
// valid.
__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, int t, bool& full, bool& visible);

// Columns that rows [r0, r1] may see: [lo, hi), hi <= lo when there are none.
__device__ __forceinline__ void mask_columns(int r0, int r1, int n, int t, int& lo, int& hi);

// Rows that may see columns [c0, c1]: [lo, hi), hi <= lo when there are none.
__device__ __forceinline__ void mask_rows(int c0, int c1, int n, int t, int& lo, int& hi);

// 32 pairs at once: bit i is what mask_valid says of the column c0 + i, and of the row r0 + i.
__device__ __forceinline__ u32 mask_row_bits(int row, int c0, int n, int t);
__device__ __forceinline__ u32 mask_column_bits(int col, int r0, int n, int t);

// The weight of a row and a column whose raw dot product is x. `at()` says where they are and is called by a score that
// asks: row, col, n and t as of mask_valid, and the head. Params has the scalars of the launch, such as alpha.
template <class At, class Params>
__device__ __forceinline__ float score(float x, const At& at, const Params& params);

// The same as y, and its derivative with respect to x.
template <class At, class Params>
__device__ __forceinline__ void score_grad(float x, const At& at, const Params& params, float& y, float& dy);
