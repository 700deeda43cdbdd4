// Whether there is room for the data of a batch: asked before anything is drawn.
#pragma once

#include "compiler/spec/batch.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

// Purposes of the data of a batch: a launch, a comparison with the float64 answer beside it, which takes more memory,
// or times, which take less.
enum class DrawnFor { kChecking, kRunning, kTiming };

// Bytes that the tensors take at the peak, estimated: rather more than they do than less.
double data_memory(const OpSpec& spec, Direction direction, const BatchSize& batch, int64_t max_seq_len, DrawnFor use);

// kOutOfMemory when the tensors take more than the machine has, or than this process may have (ulimit -v): with the
// bytes, the tensors that take them, and what in a config their sizes follow from.
Status check_data_memory(const OpSpec& spec, Direction direction, const BatchSize& batch, int64_t max_seq_len,
                         DrawnFor use);

}  // namespace hstujit
