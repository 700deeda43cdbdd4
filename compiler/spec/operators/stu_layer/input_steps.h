// The half of a layer up to attention, as steps of a program: a norm, the projection to u, v, q and k, attention.
#pragma once

#include <optional>
#include <string>

#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program.h"

namespace hstujit {

// Arguments of the norm of x.
ProgramValues input_norm_operands(const StuNames& names = {});
// Whether products and sums over rows have as many columns; a mistake where not.
bool check_projection_columns(int64_t heads, int64_t columns, const std::string& path, Mistakes& mistakes);

class StuInputSteps {
 public:
  // Nothing where there are mistakes.
  static std::optional<StuInputSteps> make(const HstuAttentionParams& attention, const StuParams& stu,
                                           const StuInputParams& input, const std::string& path, Mistakes& mistakes,
                                           const StuMemoryParams& memory = {});

  // Declares what forward gives and backward takes, of so many layers.
  void keep(ProgramBuilder& program, ArgumentRole role, int64_t layers = 1) const;
  // Declares the weights, of which a backward direction takes columns.
  void take_weights(ProgramBuilder& program, int64_t layers = 0) const;

  // x to `normed_x` and `uvqk`. Each is a temporary, or, where `kept`, what was declared.
  void project(ProgramBuilder& program, bool kept, const ProgramValue& x = {"x"}, const StuNames& names = {}) const;
  // u of uvqk, which forward gives as silu(u), and its gradient, from that of silu(u).
  void activate(ProgramBuilder& program, bool kept, const ProgramValue& u) const;
  void activate_backward(ProgramBuilder& program, const ProgramValue& du) const;
  // q, k and v of uvqk to `attn`.
  void attend(ProgramBuilder& program, bool kept, const ProgramValue& attn, const StuNames& names = {}) const;

  // A backward direction begins: what of `normed_x` and u is computed again. The former lies in `dx` until that is
  // written, at the end.
  void begin_backward(ProgramBuilder& program, const ProgramValue& x = {"x"},
                      const ProgramValue& dx = {"dx", -1, "gradient of x"}, const StuNames& names = {}) const;
  // `dattn` to v, q and k of the temporary `duvqk`, whose columns of u are somebody else's.
  void attend_backward(ProgramBuilder& program, const StuMatrix& dattn,
                       const ProgramValue& dx = {"dx", -1, "gradient of x"}, const StuNames& names = {}) const;
  // `duvqk` to the gradients of x and of all weights. `dresidual`: the gradient of x around the layer, if it has one.
  void project_backward(ProgramBuilder& program, const std::optional<ProgramValue>& dresidual,
                        const ProgramValue& x = {"x"}, const ProgramValue& dx = {"dx", -1, "gradient of x"},
                        const StuNames& names = {}) const;

  // u before its silu, and uvqk where all of it is there.
  ProgramValue u(bool kept, const StuNames& names = {}) const { return uvqk(kept, names).columns(0); }
  ProgramValue u_of_backward(const StuNames& names = {}) const;
  static StuMatrix duvqk(const StuNames& names = {}) { return names.between("duvqk"); }

  const StuWidths& widths() const { return widths_; }
  DataType dtype() const { return dtype_; }

 private:
  // A product to columns of u, v, q and k that are neighbours.
  struct Projection {
    OpSpecPtr spec;
    int64_t first = 0;     // of them
    int64_t first_to = 0;  // where they are put
  };

  StuInputSteps(const HstuAttentionParams& attention, const StuInputParams& input, const StuMemoryParams& memory)
      : widths_(attention.heads, attention.attn_dim, attention.hidden_dim),
        dtype_(attention.dtype),
        input_(input),
        memory_(memory) {}

  bool has_all_again() const { return input_.recompute_uvqk && memory_.recompute_attn; }
  StuMatrix normed_x(bool kept, const StuNames& names) const;
  StuMatrix uvqk(bool kept, const StuNames& names) const;
  ProgramValue normed_x_of_backward(const ProgramValue& dx, const StuNames& names) const;
  void add_norm(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& out, const StuNames& names) const;
  void add_projection(ProgramBuilder& program, const ProgramValue& normed_x, const ProgramValue& out,
                      const StuNames& names) const;
  void add_columns(ProgramBuilder& program, const Projection& projection, const ProgramValue& normed_x,
                   const StuMatrix& out, const StuNames& names) const;

  StuWidths widths_;
  DataType dtype_;
  int64_t width_ = 0;
  StuInputParams input_;
  StuMemoryParams memory_;
  OpSpecPtr norm_, norm_of_residual_, projection_, projection_dgrad_, projection_wgrad_, silu_, attention_;
  // Of backward: u, and v, q and k of each group of heads, whose attention is `attention_of_group_`.
  Projection projection_of_u_;
  std::vector<std::vector<Projection>> projections_of_groups_;
  OpSpecPtr attention_of_group_;
};

}  // namespace hstujit
