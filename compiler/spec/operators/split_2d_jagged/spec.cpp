#include "compiler/spec/operators/split_2d_jagged/spec.h"

#include "compiler/spec/operators/concat_2d_jagged/spec.h"

namespace hstujit {

OpSpecPtr parse_split_2d_jagged(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<Split2dJaggedSpec>(json, path, mistakes);
}
Json schema_split_2d_jagged() { return fields_schema<SplitParams>(); }

RowInterface Split2dJaggedSpec::forward_interface() const {
  RowInterface interface{params_.width, {}, {}};
  RowOperand values{"values", RowOperandKind::kRow, params_.dtype, "rows of both, sequence by sequence"};
  RowOperand left{"left", RowOperandKind::kRow, params_.dtype, "rows of the left side"};
  RowOperand right{"right", RowOperandKind::kRow, params_.dtype, "rows of the right side"};
  interface.sequences = params_.sequences("n_prefix_to_right");
  if (params_.left_only) {
    values.rows = interface.sequences->axis();
    interface.sequences->walked = {params_.left()};
    interface.outputs = {left};
  } else {
    left.rows = params_.left();
    right.rows = params_.right();
    interface.outputs = {left, right};
  }
  interface.inputs = {values};
  return interface;
}

std::shared_ptr<const GradientProgram> Split2dJaggedSpec::gradient() const {
  if (params_.left_only) return nullptr;
  return std::make_shared<GradientProgram>(
      std::make_shared<Concat2dJaggedSpec>(params_),
      std::map<std::string, ProgramValue>{{"left", {"dleft", -1, "gradient of left"}},
                                          {"right", {"dright", -1, "gradient of right"}},
                                          {"out", {"dvalues", -1, "gradient of values"}},
                                          {"n_prefix_from_right", {"n_prefix_to_right"}}});
}

}  // namespace hstujit
