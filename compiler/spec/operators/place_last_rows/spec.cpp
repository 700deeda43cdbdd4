#include "compiler/spec/operators/place_last_rows/spec.h"

#include "compiler/spec/operators/take_last_rows/last_rows.h"
#include "compiler/spec/operators/take_last_rows/spec.h"

namespace hstujit {

OpSpecPtr parse_place_last_rows(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<PlaceLastRowsSpec>(json, path, mistakes);
}
Json schema_place_last_rows() { return fields_schema<SequenceParams>(); }

RowInterface PlaceLastRowsSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  RowOperand values{"values", RowOperandKind::kRow, params_.dtype, "the last rows of each sequence"};
  values.rows = last_rows();
  interface.inputs = {values};
  interface.outputs = {{"out", RowOperandKind::kRow, params_.dtype, "rows of all sequences"}};
  interface.sequences = last_row_sequences(all_rows(), params_.offsets_dtype);
  return interface;
}

GeneratedRows PlaceLastRowsSpec::generated_rows(int64_t sequence, int64_t drawn, int64_t) const {
  return generated_last_rows(sequence, drawn);
}

std::shared_ptr<const GradientProgram> PlaceLastRowsSpec::gradient() const {
  return std::make_shared<GradientProgram>(
      std::make_shared<TakeLastRowsSpec>(params_),
      std::map<std::string, ProgramValue>{{"values", {"dout", -1, "gradient of the result"}},
                                          {"out", {"dvalues", -1, "gradient of values"}}});
}

}  // namespace hstujit
