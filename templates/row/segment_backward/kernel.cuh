// The backward direction of operators whose rows find the row of a table that is their sequence's, on Hopper: rows come
// in the order of those that they find, so that one pass is all:
//
//   kernel_main        the rows' gradients, the table, and the sums of segments that several CTAs have, in parts
//   finish_segments    those put together
//
// Sums are in fp32 and in an order that follows from the sizes and lengths alone: the same call gives the same bits.
#include "row/segment_backward/segments.cuh"

template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  SegmentWalk<Spec, Config, Operands, Row, Params>(params).run();
}

template <class Spec, class Config, class Params>
__device__ void finish_segments(const Params& params) {
  SegmentWalk<Spec, Config, Operands, Row, Params>(params).finish();
}
