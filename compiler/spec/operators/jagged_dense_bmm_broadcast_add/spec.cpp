#include "compiler/spec/operators/jagged_dense_bmm_broadcast_add/spec.h"

#include "compiler/spec/operators/jagged_jagged_bmm/spec.h"

namespace hstujit {

namespace {

using BmmParams = JaggedDenseBmmBroadcastAddParams;

GemmInterface interface_of(const BmmParams& params) {
  GemmInterface gemm;
  gemm.n = params.n;
  gemm.k = params.k;
  gemm.a = {"jagged", false, "rows of all sequences"};
  gemm.b = {"dense", params.transpose_dense, "a matrix of each sequence"};
  gemm.doc = "result";
  gemm.offsets_dtype = params.offsets_dtype;
  if (!params.bias) return gemm;
  const auto kind = params.elementwise ? GemmOperandKind::kMatrix : GemmOperandKind::kVector;
  gemm.operands = {{"bias", kind, "what is added"}};
  return gemm;
}

// Without a bias there is none of a kind.
BmmParams canonical(BmmParams params) {
  params.elementwise = params.elementwise && params.bias;
  return params;
}

}  // namespace

OpSpecPtr parse_jagged_dense_bmm_broadcast_add(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_gemm_operator<JaggedDenseBmmBroadcastAddSpec>(json, path, mistakes);
}
Json schema_jagged_dense_bmm_broadcast_add() { return fields_schema<BmmParams>(); }

JaggedDenseBmmBroadcastAddSpec::JaggedDenseBmmBroadcastAddSpec(BmmParams params)
    : GemmOperator(canonical(params), interface_of(params)) {}

std::shared_ptr<const GradientProgram> JaggedDenseBmmBroadcastAddSpec::gradient() const {
  BmmParams of_jagged = params_;
  of_jagged.k = params_.n;
  of_jagged.n = params_.k;
  of_jagged.bias = false;
  of_jagged.transpose_dense = !params_.transpose_dense;
  JaggedJaggedBmmParams of_dense;
  static_cast<SequenceGemmParams&>(of_dense) = params_;
  of_dense.transpose_out = params_.transpose_dense;
  of_dense.bias = has_bias_rows();

  const ProgramValue dout{"dout", -1, "gradient of the result"};
  ProgramBuilder program;
  program.inputs({"jagged", "dense", "dout", "seq_offsets", "max_seq_len"});
  program.step(std::make_shared<JaggedDenseBmmBroadcastAddSpec>(of_jagged), Direction::kForward,
               {{"jagged", dout}, {"out", {"djagged", -1, "gradient of jagged"}}});
  program.step(std::make_shared<JaggedJaggedBmmSpec>(of_dense), Direction::kForward,
               {{"left", {"jagged"}},
                {"right", dout},
                {"out", {"ddense", -1, "gradient of dense, summed over the rows of each sequence"}},
                {"dbias", {"dbias", -1, "gradient of bias, summed over the rows of each sequence"}}});
  return std::make_shared<GradientProgram>(program.finish());
}

}  // namespace hstujit
