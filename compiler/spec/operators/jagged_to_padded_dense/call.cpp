#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_jagged_to_padded_dense(CallDeclaration& call) {
  sequence_call(call, "values").presence("padding_value", "padding_value");
}

}  // namespace hstujit
