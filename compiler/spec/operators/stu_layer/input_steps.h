// The half of a layer up to attention, as steps of a program: a norm, the projection to u, v, q and k, attention.
#pragma once

#include <optional>
#include <string>

#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program.h"

namespace hstujit {

// Arguments of the norm of x.
ProgramValues input_norm_operands();
// Whether products and sums over rows have as many columns; a mistake where not.
bool check_projection_columns(int64_t heads, int64_t columns, bool bias, const std::string& path, Mistakes& mistakes);

class StuInputSteps {
 public:
  // Nothing where there are mistakes.
  static std::optional<StuInputSteps> make(const HstuAttentionParams& attention, const StuParams& stu,
                                           const StuInputParams& input, const std::string& path, Mistakes& mistakes);

  // x to `normed_x` and `uvqk`. Each is a temporary, or, where `kept`, an output of the program.
  void project(ProgramBuilder& program, bool kept) const;
  // u of `uvqk`, which forward gives as silu(u), and its gradient, from that of silu(u).
  void activate(ProgramBuilder& program, const ProgramValue& u) const;
  void activate_backward(ProgramBuilder& program, const ProgramValue& du) const;
  // q, k and v of `uvqk` to `attn`.
  void attend(ProgramBuilder& program, const ProgramValue& attn) const;

  // `normed_x` and `uvqk` of a backward direction: computed again, or inputs of it.
  void project_again(ProgramBuilder& program) const;
  // `dattn` to v, q and k of the temporary `duvqk`, whose columns of u are somebody else's.
  void attend_backward(ProgramBuilder& program, const ProgramValue& dattn) const;
  // `duvqk` to the gradients of x and of all weights. `dresidual`: the gradient of x around the layer, if it has one.
  void project_backward(ProgramBuilder& program, const std::optional<ProgramValue>& dresidual) const;

  const StuWidths& widths() const { return widths_; }
  DataType dtype() const { return dtype_; }

 private:
  StuInputSteps(const HstuAttentionParams& attention, const StuInputParams& input)
      : widths_(attention.heads, attention.attn_dim, attention.hidden_dim), dtype_(attention.dtype), input_(input) {}

  void add_norm(ProgramBuilder& program) const;
  void add_projection(ProgramBuilder& program) const;

  StuWidths widths_;
  DataType dtype_;
  int64_t width_ = 0;
  StuInputParams input_;
  OpSpecPtr norm_, norm_of_residual_, projection_, projection_dgrad_, projection_wgrad_, bias_, silu_, attention_;
};

}  // namespace hstujit
