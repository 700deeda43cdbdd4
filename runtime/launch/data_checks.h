// HSTUJIT_CHECK=1: looks at the offsets of jagged axes and the counts of sequences' rows before a launch. It waits for
// the stream, so it is for finding mistakes, not for production; without it such input never makes a kernel leave the
// given rows.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "compiler/spec/signature.h"
#include "compiler/support/status.h"
#include "runtime/driver/cuda_driver.h"
#include "runtime/launch/arguments.h"

namespace hstujit {

// Bounds of the numbers in one tensor of offsets.
struct JaggedAxis {
  std::string_view offsets;  // the tensor's name
  std::string_view symbol;   // the axis' size: "L"
  int64_t total_rows = 0;    // the value of that
  std::string_view max_rows_name;
  int64_t max_rows = std::numeric_limits<int64_t>::max();  // of one sequence, and the argument that says so
  bool all_rows = false;                                   // there must be none behind the last sequence
};

// kInvalidArgument with the first offset that is not allowed.
Status check_jagged(const JaggedAxis& axis, const std::vector<int64_t>& offsets);

// kInvalidArgument with the first count of the argument `name` that is not allowed. The offsets passed check_jagged.
Status check_counts(std::string_view name, const std::vector<int64_t>& offsets, const std::vector<int64_t>& counts);

// Both for the values of a launch that passed ArgumentChecker. Tensors are on the device when `driver` is given,
// and nothing is looked at while `stream` is being captured.
Status check_launch_data(const CudaDriver* driver, const Signature& signature, const hstujit_value* values,
                         cuda::Stream stream);

}  // namespace hstujit
