#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"

#include <fmt/format.h>

namespace hstujit {

OpSpecPtr parse_hstu_norm_mul_dropout(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<HstuNormMulDropoutSpec>(json, path, mistakes);
}

Json schema_hstu_norm_mul_dropout() { return fields_schema<HstuNormMulDropoutParams>(); }

void HstuNormMulDropoutParams::check(const std::string& path, Mistakes& mistakes) const {
  if (group_norm && width % heads != 0) {
    const std::string place = join_path(path, "heads");
    mistakes.check(place,
                   Status(Code::kInvalidConfig,
                          fmt::format("{} is {}, but width is {}; allowed: a divisor of it", place, heads, width)));
  }
  if (group_norm && silu_u && mul_u_activation == "sigmoid") {
    const std::string place = join_path(path, "mul_u_activation");
    mistakes.check(place, Status(Code::kInvalidConfig,
                                 fmt::format("{} is \"sigmoid\", but with group_norm silu_u is for the u that "
                                             "multiplies, too; allowed: \"none\" or \"silu\", which mean the same",
                                             place)));
  }
}

void HstuNormMulDropoutParams::make_canonical() {
  if (!group_norm) heads = 1;
  if (group_norm && silu_u) mul_u_activation = "silu";
  if (!concat_u) silu_u = false;
  if (!dropout) seed_tensor = row_numbers = false;
}

RowInterface HstuNormMulDropoutSpec::forward_interface() const {
  const HstuNormMulDropoutParams& p = params_;
  const RowOperandKind kind = p.group_norm ? RowOperandKind::kGroupVector : RowOperandKind::kVector;
  RowInterface interface{p.width, {}, {}, p.groups()};
  interface.inputs.push_back({"x", RowOperandKind::kRow, p.dtype, "rows that are normalised", 0.5});
  interface.inputs.push_back({"u", RowOperandKind::kRow, p.dtype, "rows that they are multiplied with"});
  for (RowOperand& row : interface.inputs) row.gradient_in_place = true;  // a layer's backward has less memory by it
  interface.inputs.push_back({"weight", kind, p.weight_dtype, "factor of each column, or head", 1});
  if (p.has_bias()) interface.inputs.push_back({"bias", kind, p.weight_dtype, "added to each column, or head"});
  interface.inputs.push_back(
      RowOperand::scalar("eps", "added to the variance, or to the mean square", 1e-5, kNotNegative));
  if (p.dropout) {
    interface.inputs.push_back(RowOperand::scalar("dropout_ratio", "of the elements that become 0", 0.25, {0, 1}));
    RowOperand seed{"seed", RowOperandKind::kSeed, DataType::kFp32, "decides which ones", 0x123456789abcd};
    if (p.seed_tensor) {
      seed.kind = RowOperandKind::kSeedTensor;
      seed.tensor = "seed_tensor";
    }
    interface.inputs.push_back(seed);
    interface.inputs.push_back(
        {"offset", RowOperandKind::kSeed, DataType::kFp32, "decides it, too: another one for each call", 0x500000003});
  }
  const auto output = [&](const char* name, int64_t first) {
    RowOperand operand{name, RowOperandKind::kRow, p.dtype, "result"};
    if (p.columns() > p.width) operand.tensor = "out";
    operand.first_column = first;
    interface.outputs.push_back(operand);
  };
  if (p.concat_u) output("out_u", 0);
  if (p.concat_x) output("out_x", p.first_x());
  output(p.columns() > p.width ? "out_y" : "out", p.first_product());
  interface.drawn = p.dropout ? p.columns() / p.width : 0;
  interface.has_row_numbers = p.row_numbers;
  return interface;
}

std::vector<OpSpec::TunedAlike> HstuNormMulDropoutSpec::tuned_alike() const {
  if (!params_.seed_tensor && !params_.row_numbers) return {};
  HstuNormMulDropoutParams other = params_;
  other.seed_tensor = other.row_numbers = false;
  const char* const difference = params_.seed_tensor ? "the seed as a number" : "no row_numbers";
  return {{std::make_shared<HstuNormMulDropoutSpec>(std::move(other)), difference}};
}

double HstuNormMulDropoutSpec::operations(Direction direction) const {
  const double activations = (params_.silu_u ? 4 : 0) + (params_.mul_u_activation != "none" ? 4 : 0);
  const double dropout = params_.dropout ? 5 * static_cast<double>(params_.columns() / params_.width) : 0;
  return direction == Direction::kForward ? 8 + activations + dropout : 18 + 3 * activations + dropout;
}

}  // namespace hstujit
