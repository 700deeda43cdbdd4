// The attention operators: a row and a column of a sequence, as a score may ask where they are.
//
// A score is handed a function that makes the pair, which has copies of what it needs: `[=] { return Pair{...}; }`. One
// that does not call it compiles to the instructions that it would have if there were none, in the same order.
#pragma once
#include "attention/operands/head.cuh"          // where head_element
#include "attention/operands/intervals.cuh"     // where kAttnFunc
#include "attention/operands/pair_element.cuh"  // where pair_element
#include "attention/operands/row.cuh"           // where row_element
#include "attention/operands/row.cuh"           // where own_row_element
#include "attention/operands/scalar.cuh"        // where scalar_element
#include "attention/operands/sequence.cuh"      // where sequence_element
#include "attention/operands/table.cuh"         // where table_element
#include "attention/pair_distance.cuh"          // where pair_distance
#include "common/floor_div_wide.cuh"            // where floor_div_wide
#include "common/max_nan.cuh"                   // where max_nan
#include "common/min_nan.cuh"                   // where min_nan
#include "common/wide_to_float.cuh"             // where wide_to_float

#ifdef kSequenceCounts
struct Pair {
  int row, col, n;
  SequenceCounts t;
  int head;
#elifdef kAttnFunc
struct Pair {
  int row, col, n;
  RowIntervals t;
  int head;
#else
struct Pair {
  int row, col, n, t, head;
#endif
  i64 start;        // first row of the sequence in tensors of all rows
  int further = 0;  // how much larger row - col is than for another pair of the thread, a constant
};
