// The attention operators: how far a pair's column is from its row, as a real number.
#pragma once
#include "common/types.cuh"

// row - col. Pairs of a thread that differ by what the compiler knows share one conversion: those from integers have a
// quarter of the rate of other instructions. Exact up to 2^24, from there on within an ulp.
template <class PairOf>
__device__ __forceinline__ float pair_distance(const PairOf& pair) {
  return static_cast<float>(pair.row - pair.col - pair.further) + static_cast<float>(pair.further);
}
