// Random numbers inside the loops of the host backend, the same bits as on a GPU (templates/common/philox.cuh).
#pragma once

#include "compiler/host/emitter.h"

namespace hstujit {

// Draws numbers for elements `element`, `element` + 1, ..., one in each lane; all arguments are indices.
mlir::Value emit_philox_uniform(Emitter& emit, mlir::Value seed, mlir::Value offset, mlir::Value element);

}  // namespace hstujit
