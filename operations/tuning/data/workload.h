// The name of a workload: which batch a time was taken on.
#pragma once

#include <string>

#include "compiler/spec/op_spec.h"

namespace hstujit {

// "b256-n1024-r157286-t5120-0123456789abcdef": sequences, max_seq_len, rows, targets, and the beginning of a digest of
// all of them in order. Equal names are equal batches, on every machine.
std::string workload_name(const Lengths& lengths);

}  // namespace hstujit
