#include "compiler/spec/operators/dense_to_jagged/spec.h"

#include "compiler/spec/limits.h"
#include "compiler/spec/operators/jagged_to_padded_dense/spec.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

OpSpecPtr parse_dense_to_jagged(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<DenseToJaggedSpec>(json, path, mistakes);
}
Json schema_dense_to_jagged() { return fields_schema<SequenceParams>(); }

RowInterface DenseToJaggedSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  RowOperand dense{"dense", RowOperandKind::kRow, params_.dtype, "max_len rows of each sequence"};
  dense.rows = Dimension::uniform("max_len");
  interface.inputs = {dense};
  interface.outputs = {{"out", RowOperandKind::kRow, params_.dtype, "rows of all sequences"}};
  interface.sequences = RowSequences{{Dimension::jagged(std::string(kSequenceAxis), "seq_offsets")},
                                     {offsets_argument("seq_offsets", params_.offsets_dtype, kSequenceAxis),
                                      integer_argument("max_len", "rows of each sequence of dense", kMaxSeqLen)}};
  return interface;
}

GeneratedRows DenseToJaggedSpec::generated_rows(int64_t, int64_t drawn, int64_t max_seq_len) const {
  return {drawn, {{std::string(kQueryAxis), max_seq_len}}};
}

std::shared_ptr<const GradientProgram> DenseToJaggedSpec::gradient() const {
  JaggedToPaddedDenseParams params;
  static_cast<SequenceParams&>(params) = params_;
  return std::make_shared<GradientProgram>(
      std::make_shared<JaggedToPaddedDenseSpec>(params),
      std::map<std::string, ProgramValue>{{"values", {"dout", -1, "gradient of the result"}},
                                          {"out", {"ddense", -1, "gradient of dense"}},
                                          {"max_len", {"max_len", -1, "rows of each sequence of ddense"}}});
}

}  // namespace hstujit
