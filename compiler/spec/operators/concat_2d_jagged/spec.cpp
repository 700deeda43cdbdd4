#include "compiler/spec/operators/concat_2d_jagged/spec.h"

#include "compiler/spec/operators/split_2d_jagged/spec.h"

namespace hstujit {

OpSpecPtr parse_concat_2d_jagged(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<Concat2dJaggedSpec>(json, path, mistakes);
}
Json schema_concat_2d_jagged() { return fields_schema<JaggedSidesParams>(); }

RowInterface Concat2dJaggedSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  // A row is of one side: the other adds nothing.
  RowOperand left{"left", RowOperandKind::kRow, params_.dtype, "rows of the left side"};
  left.rows = params_.left();
  left.missing = -0.0;
  RowOperand right{"right", RowOperandKind::kRow, params_.dtype, "rows of the right side"};
  right.rows = params_.right();
  right.missing = -0.0;
  interface.inputs = {left, right};
  interface.outputs = {{"out", RowOperandKind::kRow, params_.dtype, "rows of both, sequence by sequence"}};
  interface.sequences = params_.sequences("n_prefix_from_right");
  return interface;
}

std::shared_ptr<const GradientProgram> Concat2dJaggedSpec::gradient() const {
  return std::make_shared<GradientProgram>(
      std::make_shared<Split2dJaggedSpec>(SplitParams{params_}),
      std::map<std::string, ProgramValue>{{"values", {"dout", -1, "gradient of the result"}},
                                          {"left", {"dleft", -1, "gradient of left"}},
                                          {"right", {"dright", -1, "gradient of right"}},
                                          {"n_prefix_to_right", {"n_prefix_from_right"}}});
}

}  // namespace hstujit
