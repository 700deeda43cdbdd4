// hstu_norm_mul_dropout: a norm, gated by other rows, beside which both may stand, with dropout (docs/ops-rows.md,
// "hstu_norm_mul_dropout").
#pragma once

#include "compiler/spec/row_norms.h"
#include "compiler/spec/row_operator.h"

namespace hstujit {

// Docs of parameters that operators with dropout have.
inline constexpr std::string_view kSeedTensorDoc =
    "with dropout, launches take the seed as seed_tensor, one int64 in the device's memory, and not as a number";

inline constexpr std::string_view kRowNumbersDoc =
    "with dropout, launches take row_numbers: a row drops what the row of that number drops";

struct HstuNormMulDropoutParams : RowParams {
  static constexpr std::string_view kOp = "hstu_norm_mul_dropout";

  std::string norm = "layer_norm";
  bool group_norm = false;
  int64_t heads = 1;
  std::string mul_u_activation = "none";
  bool silu_u = false;
  bool concat_u = false;
  bool concat_x = false;
  bool dropout = false;
  bool seed_tensor = false;
  bool row_numbers = false;

  static constexpr auto fields() {
    using P = HstuNormMulDropoutParams;
    return std::tuple_cat(
        fields_of<P>(),
        std::make_tuple(
            field("norm", &P::norm, "what normalises x: layer_norm or rms_norm").one_of("layer_norm rms_norm"),
            field("group_norm", &P::group_norm, "normalises the columns of each head apart"),
            field("heads", &P::heads, "heads of group_norm, each of width / heads columns", 1, 64),
            field("mul_u_activation", &P::mul_u_activation, "what is applied to the u that multiplies")
                .one_of("none sigmoid silu"),
            field("silu_u", &P::silu_u, "applies silu to the u of the result, with group_norm to both"),
            field("concat_u", &P::concat_u, "the result begins with the columns of u"),
            field("concat_x", &P::concat_x, "the columns of x come before those of the product"),
            field("dropout", &P::dropout,
                  "launches take dropout_ratio, the part of elements that become 0, a seed and an offset"),
            field("seed_tensor", &P::seed_tensor, kSeedTensorDoc),
            field("row_numbers", &P::row_numbers, kRowNumbersDoc)));
  }

  int64_t groups() const { return group_norm ? heads : 1; }
  RowNorm row_norm() const { return norm == "rms_norm" ? RowNorm::kRms : RowNorm::kLayer; }
  bool has_bias() const { return row_norm() == RowNorm::kLayer; }
  // Columns of the result, and where those of x and of the product begin in it.
  int64_t columns() const { return first_product() + width; }
  int64_t first_x() const { return concat_u ? width : 0; }
  int64_t first_product() const { return first_x() + (concat_x ? width : 0); }

  void check(const std::string& path, Mistakes& mistakes) const;
  void make_canonical();
};

// Forward: x, u (L,D), weight, [bias] (D) or (H), eps (float), [dropout_ratio (float), seed (int) or seed_tensor (1),
// offset (int), row_numbers (L)],
// out (L, D, 2D or 3D). Backward: x, u, dout, and all that is not a row, dx, du (L,D), dweight, [dbias].
class HstuNormMulDropoutSpec final : public RowOperator<HstuNormMulDropoutParams> {
 public:
  using RowOperator::RowOperator;

  double operations(Direction direction) const override;
  // The instance whose seed is a number, and which has no row_numbers: its kernels differ in a load of each.
  std::vector<TunedAlike> tuned_alike() const override;

  // Computes a row of the reference (row_reference.h).
  void reference_row(Direction direction, ReferenceRow& row) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
