#include "compiler/spec/operators/jagged_to_padded_dense/spec.h"

#include "compiler/spec/limits.h"
#include "compiler/spec/operators/dense_to_jagged/spec.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

OpSpecPtr parse_jagged_to_padded_dense(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<JaggedToPaddedDenseSpec>(json, path, mistakes);
}
Json schema_jagged_to_padded_dense() { return fields_schema<JaggedToPaddedDenseParams>(); }

RowInterface JaggedToPaddedDenseSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  RowOperand values{"values", RowOperandKind::kRow, params_.dtype, "rows of all sequences"};
  values.rows = Dimension::jagged(std::string(kSequenceAxis), "seq_offsets");
  if (params_.padding_value) values.fill = "padding_value";
  interface.inputs = {values};
  if (params_.padding_value)
    interface.inputs.push_back(RowOperand::scalar("padding_value", "what padding is filled with", 0.5, {}));
  interface.outputs = {{"out", RowOperandKind::kRow, params_.dtype, "max_len rows of each sequence"}};
  interface.sequences = RowSequences{{Dimension::uniform("max_len")},
                                     {offsets_argument("seq_offsets", params_.offsets_dtype, kSequenceAxis),
                                      integer_argument("max_len", "rows of each sequence of out", kMaxSeqLen)}};
  return interface;
}

GeneratedRows JaggedToPaddedDenseSpec::generated_rows(int64_t, int64_t drawn, int64_t max_seq_len) const {
  return {drawn, {{std::string(kQueryAxis), max_seq_len}}};
}

std::shared_ptr<const GradientProgram> JaggedToPaddedDenseSpec::gradient() const {
  return std::make_shared<GradientProgram>(
      std::make_shared<DenseToJaggedSpec>(params_),
      std::map<std::string, ProgramValue>{{"dense", {"dout", -1, "gradient of the result"}},
                                          {"out", {"dvalues", -1, "gradient of values"}},
                                          {"max_len", {"max_len", -1, "rows of each sequence of dout"}}});
}

}  // namespace hstujit
