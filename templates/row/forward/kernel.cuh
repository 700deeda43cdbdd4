// The forward direction of operators over rows: no thread keeps anything of a row that is over.
#include "common/rounded_to.cuh"  // where rounded_to
#include "row/groups.cuh"         // where Groups
#include "row/random.cuh"         // where Random
#include "row/ring.cuh"           // where Ring
#include "row/rows.cuh"
#include "row/sequences.cuh"  // where Sequences

template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  Rows<Spec, Config, Operands, Row, NoRowSums, Params>(params).run();
}
