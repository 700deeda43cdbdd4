#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_jagged_to_padded_dense() {
  return sequence_call("values").presence("padding_value", "padding_value");
}

}  // namespace hstujit
