#include "compiler/spec/operators/stu_layer/layer_steps.h"

#include <algorithm>

namespace hstujit {

std::vector<std::string> StuLayerSteps::inputs(const std::vector<std::string>& kept) {
  std::vector<std::string> names = {"x",         "input_norm_weight", "input_norm_bias",    "uvqk_weight",
                                    "uvqk_bias", "output_weight",     "output_norm_weight", "output_norm_bias"};
  names.insert(names.end(), kept.begin(), kept.end());
  for (const char* const name : {"normed_x", "uvqk", "attn", "y", "dout", "eps", "dropout_ratio", "seed", "seed_tensor",
                                 "offset", "row_numbers"})
    names.emplace_back(name);
  return names;
}

std::vector<std::string> StuLayerSteps::gradients() {
  return {"doutput_weight",     "doutput_norm_weight", "doutput_norm_bias", "duvqk_weight", "duvqk_bias", "dx",
          "dinput_norm_weight", "dinput_norm_bias"};
}

StuMatrix StuLayerSteps::attn(bool kept, const StuNames& names) const {
  return kept && !recompute_attn_ ? names.kept("attn", output_.v_columns()) : names.between("attn");
}

void StuLayerSteps::keep(ProgramBuilder& program, ArgumentRole role, int64_t layers) const {
  if (!recompute_attn_) {
    program.matrix(
        role, "attn", input_.dtype(), layers * output_.v_columns(), "seq_offsets",
        role == ArgumentRole::kInput ? "attention output, as forward gave it" : "attention output, for backward");
  }
  input_.keep(program, role, layers);
  output_.keep(program, role, layers);
}

void StuLayerSteps::forward(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& out,
                            const StuNames& names) const {
  const StuMatrix attn = this->attn(training_, names);
  if (!training_ || recompute_attn_) program.temporary(attn.name, input_.dtype(), output_.v_columns());
  // The norm's result lies in `out` until that is written, at the end.
  input_.project(program, training_, out, x, names);
  input_.attend(program, training_, attn.columns(0), names);
  output_.compute(program, attn.all(), input_.u(training_, names), training_, input_.free_columns(training_, names), x,
                  out, names);
}

void StuLayerSteps::backward(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& dout,
                             const ProgramValue& dx, const StuNames& names) const {
  const StuWidths& widths = input_.widths();
  // One matrix has, side by side, u, v, q and k of the gradient of uvqk, and what is needed apart from them: dattn, and
  // then the gradient of the norm's result. attn lies where its gradient will, if it was not kept: the gate's backward
  // reads an element in the thread that writes its gradient.
  const StuMatrix duvqk = StuInputSteps::duvqk(names), dattn = input_.behind_duvqk(names),
                  attn = recompute_attn_ ? dattn : this->attn(/*kept=*/true, names);
  input_.begin_backward(program, x, dx, names, std::max(output_.v_columns(), input_.width()));
  if (recompute_attn_) input_.attend_again(program, attn, dx, names);
  // The columns of v, q and k get their gradients behind the gate.
  output_.compute_backward(program, attn.all(), input_.u_of_backward(names), dattn.all(), duvqk.columns(0),
                           {duvqk, widths.first_v(), widths.uvqk() - widths.first_v()}, dout, names);
  input_.attend_backward(program, dattn, x, dx, names);
  const auto dresidual = output_.has_residual() ? std::optional<ProgramValue>(dout) : std::nullopt;
  input_.project_backward(program, dattn.all(), dresidual, x, dx, names);
}

}  // namespace hstujit
