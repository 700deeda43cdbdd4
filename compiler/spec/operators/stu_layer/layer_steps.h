// A whole layer as steps of a program: of stu_layer, and of each layer of stu_stack.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/spec/operators/stu_layer/input_steps.h"
#include "compiler/spec/operators/stu_layer/output_steps.h"

namespace hstujit {

class StuLayerSteps {
 public:
  // P has the parameters of stu_layer. Nothing where there are mistakes.
  template <typename P>
  static std::optional<StuLayerSteps> make(const P& params, const std::string& path, Mistakes& mistakes) {
    const auto input = StuInputSteps::make(params, params, params, path, mistakes, params, params.silu_uvqk);
    const StuGate gate = StuGate::of_layer(params);
    const auto output = StuOutputSteps::make(gate, params, params, path, mistakes);
    if (!input || !output) return std::nullopt;
    return StuLayerSteps(*input, *output, params.training, params.recompute_attn);
  }

  // The order of inputs, `kept` between the weights and the gradient of the result.
  static std::vector<std::string> inputs(const std::vector<std::string>& kept = {});

  // Order of gradients.
  static std::vector<std::string> gradients();

  // Declares what forward gives and backward takes, of so many layers.
  void keep(ProgramBuilder& program, ArgumentRole role, int64_t layers = 1) const;
  void forward(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& out,
               const StuNames& names = {}) const;
  // `dout` to `dx` and the gradients of weights.
  void backward(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& dout, const ProgramValue& dx,
                const StuNames& names = {}) const;

  const StuInputSteps& input() const { return input_; }

 private:
  StuLayerSteps(const StuInputSteps& input, const StuOutputSteps& output, bool training, bool recompute_attn)
      : input_(input), output_(output), training_(training), recompute_attn_(recompute_attn) {}

  // (L, H, Dv), as attention has it: columns of a matrix, of which all are columns.
  StuMatrix attn(bool kept, const StuNames& names) const;

  StuInputSteps input_;
  StuOutputSteps output_;
  bool training_, recompute_attn_;
};

}  // namespace hstujit
