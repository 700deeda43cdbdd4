#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_place_last_rows(CallDeclaration& call) {
  sequence_call(call, "values").dtype("offsets_dtype", "seq_offsets seq_offsets_q");
}

}  // namespace hstujit
