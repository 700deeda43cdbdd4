// A signature as JSON: from this, bindings are generated.
#pragma once

#include "compiler/spec/json_text.h"
#include "compiler/spec/signature.h"

namespace hstujit::capi {

// {"name", "kind": "tensor"|"float"|"int", "role": "input"|"output", "dtype", "shape": ["L", 4, 128], "alignment",
// "min", "max", "semantic": "offsets"|"counts"|"max_rows", "axis": "L", "doc"}; dtype, shape and alignment for tensors
// only, min and max (the values allowed) for numbers that have such bounds, semantic and axis for integers about the
// rows of sequences.
Json argument_json(const Argument& argument);
// A list of these.
Json signature_json(const Signature& signature);

}  // namespace hstujit::capi
