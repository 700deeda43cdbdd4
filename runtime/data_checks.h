// HSTUJIT_CHECK=1: looks at the numbers in seq_offsets and num_targets before a launch. It waits for the stream, so it
// is for finding mistakes, not for production; without it such input never makes a kernel leave the given rows.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/spec/signature.h"
#include "compiler/support/status.h"
#include "runtime/arguments.h"
#include "runtime/driver/cuda_driver.h"

namespace hstujit {

// kInvalidArgument with the first offset or count that is not allowed. Either may be empty for "not an argument".
Status check_jagged(const std::vector<int64_t>& seq_offsets, const std::vector<int64_t>& num_targets,
                    int64_t max_seq_len, int64_t total_rows);

// The same for the values of a launch that passed ArgumentChecker. Tensors are on the device when `driver` is given,
// and nothing is looked at while `stream` is being captured.
Status check_launch_data(const CudaDriver* driver, const Signature& signature, const hstujit_value* values,
                         cuda::Stream stream);

}  // namespace hstujit
