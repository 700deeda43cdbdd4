// hstu_norm_mul_dropout -> hstu.row.
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"

namespace hstujit {

Result<Module> build_hstu_norm_mul_dropout(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& norm = static_cast<const HstuNormMulDropoutSpec&>(spec);
  const HstuNormMulDropoutParams& params = norm.params();
  RowBuilder row(context, norm);
  Ops& ops = row.ops();
  const mlir::Value x = row.input("x"), u = row.input("u"), eps = row.input("eps");
  mlir::Value z = params.row_norm() == RowNorm::kRms ? row.rms_norm(x, eps) : row.layer_norm(x, eps);
  z = ops.mulf(z, row.input("weight"));
  if (params.has_bias()) z = ops.addf(z, row.input("bias"));
  mlir::Value factor = u;
  if (params.mul_u_activation == "silu") factor = ops.silu(u);
  if (params.mul_u_activation == "sigmoid") factor = ops.sigmoid(u);

  std::vector<mlir::Value> outputs;
  const auto add = [&](mlir::Value value, int64_t first) {
    outputs.push_back(params.dropout ? row.dropout(value, params.columns(), first) : value);
  };
  if (params.concat_u) add(params.silu_u ? ops.silu(u) : u, 0);
  if (params.concat_x) add(x, params.first_x());
  add(ops.mulf(factor, z), params.first_product());
  return row.finish(outputs);
}

}  // namespace hstujit
