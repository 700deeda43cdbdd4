#include "compiler/spec/operators/hstu_attention/query_rows.h"

#include "compiler/spec/sequence_rows.h"

namespace hstujit {

Dimension key_rows() { return Dimension::jagged(std::string(kSequenceAxis), "seq_offsets"); }

Dimension query_rows(QueryRows rows) {
  switch (rows) {
    case QueryRows::kAll:
      return key_rows();
    case QueryRows::kLast:
      return Dimension::uniform("max_delta_len");
    case QueryRows::kLastJagged:
      break;
  }
  return Dimension::jagged(std::string(kQueryAxis), "seq_offsets_q");
}

}  // namespace hstujit
