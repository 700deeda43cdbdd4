// The size of a problem as the cost models of the gemm family see it.
#pragma once

#include <cstdint>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/gemm_spec.h"

namespace hstujit::gemm {

struct Extents {
  int64_t products = 1;  // one for each sequence, where they have their own
  int64_t m = 0, k = 0;  // of each
  double bytes = 0;      // of all tensors
};

// Sequences are taken to be as long as they are on average.
Extents extents_of(const GemmSpec& spec, const ProblemSize& size);

}  // namespace hstujit::gemm
