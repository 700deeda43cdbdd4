// Random numbers inside the loops of the host backend, the same bits as on a GPU (templates/common/philox.cuh).
#pragma once

#include "compiler/host/emitter.h"

namespace hstujit {

// Draws numbers for elements `element`, `element` + 1, ..., one in each lane; all arguments are indices.
mlir::Value emit_philox_uniform(Emitter& emit, mlir::Value seed, mlir::Value offset, mlir::Value element);

// Inputs of the numbers of attention's pairs, but for the pair; all are indices.
struct DropoutStream {
  mlir::Value seed, offset, start, head;
};

// By what dropout multiplies P, in each lane: 0, or the inverse of the part that is kept. `row` and `column` are an
// index, or lanes of i32.
mlir::Value emit_dropout_factor(Emitter& emit, const DropoutStream& of, mlir::Value ratio, mlir::Value row,
                                mlir::Value column);

}  // namespace hstujit
