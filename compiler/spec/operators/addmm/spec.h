// addmm: a matrix of few columns times weights, and a bias (docs/ops.md, "addmm").
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "compiler/spec/gemm_spec.h"
#include "compiler/spec/program_spec.h"

namespace hstujit {

struct AddmmParams : GemmParams {
  std::string input = "none";
  bool transpose_mat2 = false;

  static constexpr auto fields() {
    using P = AddmmParams;
    return std::tuple_cat(
        fields_of<P>("columns of mat1, which the product sums over", "columns of the result"),
        std::make_tuple(field("input", &P::input, "what is added: nothing, a row (n) to all rows, or a matrix (L, n)")
                            .one_of("none vector matrix"),
                        field("transpose_mat2", &P::transpose_mat2, "mat2 is (n, k), as the weight of nn.Linear")));
  }
};

// Forward: [input (N) or (L,N)], mat1 (L,K), mat2 (K,N) or (N,K), alpha, [beta], out (L,N).
class AddmmSpec final : public GemmSpec {
 public:
  static constexpr std::string_view kOp = "addmm";

  explicit AddmmSpec(AddmmParams params);

  const AddmmParams& params() const { return params_; }
  std::string_view op() const override { return kOp; }
  nlohmann::ordered_json to_json() const override;
  bool supports(Direction direction) const override { return direction == Direction::kForward; }
  const GemmInterface& interface() const override { return interface_; }
  DataType dtype() const override { return params_.dtype; }

 protected:
  double reference_epilogue(double sum, const std::vector<double>& operands) const override;

 private:
  AddmmParams params_;
  GemmInterface interface_;
};

}  // namespace hstujit
