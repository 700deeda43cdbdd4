// What an operator takes and returns: the list of arguments that a launch fills, in order.
//
// The runtime validates tensors, packs kernel parameters and describes operators to bindings from this
// list alone, so a new operator needs no code in runtime/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/types.h"

namespace hstujit {

enum class ArgumentKind { kTensor, kFloat, kInt };  // kFloat is a double, kInt an int64_t, at the C API
enum class ArgumentRole { kInput, kOutput };

// A dimension is a constant ("" symbol) or a symbol shared between arguments ("L", "B", "B+1", "N").
// A symbol has the same value wherever it appears; "B+1" is the value of "B" plus one.
struct Dimension {
  std::string symbol;
  int64_t constant = 0;
};

struct Argument {
  std::string name;  // the parameter's name in docs/ops.md
  ArgumentKind kind = ArgumentKind::kTensor;
  ArgumentRole role = ArgumentRole::kInput;
  DataType dtype = DataType::kBf16;  // tensors
  std::vector<Dimension> shape;      // tensors; innermost stride must be 1, others are free
  int alignment = 1;                 // tensors: bytes that the data pointer and all outer strides must be multiples of
  std::string_view doc;
};

using Signature = std::vector<Argument>;

// Position of an argument in a signature; -1 when there is none of that name.
int find_argument(const Signature& signature, std::string_view name);

}  // namespace hstujit
