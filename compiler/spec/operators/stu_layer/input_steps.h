// The half of a layer up to attention, as steps of a program: a norm, the projection to u, v, q and k, attention.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program.h"
#include "compiler/support/integers.h"

namespace hstujit {

// Arguments of the norm of x.
ProgramValues input_norm_operands(const StuNames& names = {});
// Whether products and sums over rows have as many columns; a mistake where not.
bool check_projection_columns(int64_t heads, int64_t columns, const std::string& path, Mistakes& mistakes);

class StuInputSteps {
 public:
  // Nothing where there are mistakes.
  static std::optional<StuInputSteps> make(const HstuAttentionParams& params, const StuParams& stu,
                                           const StuInputParams& input, const std::string& path, Mistakes& mistakes,
                                           const StuMemoryParams& memory = {}, bool silu_uvqk = false);

  // Declares what forward gives and backward takes, of so many layers.
  void keep(ProgramBuilder& program, ArgumentRole role, int64_t layers = 1) const;
  // Declares the weights, of which a backward direction takes columns.
  void take_weights(ProgramBuilder& program, int64_t layers = 0) const;

  // x to `uvqk`, a temporary, or, where `kept`, what was declared. So is its norm's result, which lies in `place`, if
  // there is one, instead of a temporary.
  void project(ProgramBuilder& program, bool kept, const std::optional<ProgramValue>& place = {},
               const ProgramValue& x = {"x"}, const StuNames& names = {}) const;
  // u of uvqk, which forward gives as silu(u), and its gradient, from that of silu(u).
  void activate(ProgramBuilder& program, bool kept, const ProgramValue& u) const;
  void activate_backward(ProgramBuilder& program, const ProgramValue& du) const;
  // q, k and v of uvqk to `attn`.
  void attend(ProgramBuilder& program, bool kept, const ProgramValue& attn, const StuNames& names = {}) const;

  // A backward direction begins: what of `normed_x` and u is computed again. The former lies in `dx` until that is
  // written, at the end; the latter in the columns of `duvqk` that get its gradient. `behind`: columns that `duvqk` has
  // behind those of k, for others.
  void begin_backward(ProgramBuilder& program, const ProgramValue& x = {"x"},
                      const ProgramValue& dx = {"dx", -1, "gradient of x"}, const StuNames& names = {},
                      int64_t behind = 0) const;
  // q, k and v to `attn` again, where forward did not keep it.
  void attend_again(ProgramBuilder& program, const StuMatrix& attn, const ProgramValue& dx,
                    const StuNames& names) const;
  // `dattn` to v, q and k of the temporary `duvqk`, whose columns of u are somebody else's.
  void attend_backward(ProgramBuilder& program, const StuMatrix& dattn, const ProgramValue& x = {"x"},
                       const ProgramValue& dx = {"dx", -1, "gradient of x"}, const StuNames& names = {}) const;
  // `duvqk` to the gradients of x and of all weights. `dnormed_x`: where that of the norm's result lies meanwhile.
  // `dresidual`: the gradient of x around the layer, if it has one.
  void project_backward(ProgramBuilder& program, const ProgramValue& dnormed_x,
                        const std::optional<ProgramValue>& dresidual, const ProgramValue& x = {"x"},
                        const ProgramValue& dx = {"dx", -1, "gradient of x"}, const StuNames& names = {}) const;

  // x normalised to `out`; `dnormed_x` to the gradients of x, to which `dresidual` is added, and of the norm's weights.
  void normalise(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& out,
                 const StuNames& names = {}) const;
  void normalise_backward(ProgramBuilder& program, const ProgramValue& dnormed_x,
                          const std::optional<ProgramValue>& dresidual, const ProgramValue& x = {"x"},
                          const ProgramValue& dx = {"dx", -1, "gradient of x"}, const StuNames& names = {}) const;

  // u of forward, before its silu but with `silu_uvqk`.
  ProgramValue u(bool kept, const StuNames& names = {}) const { return attended(kept, names).columns(0); }
  // Columns that nothing reads when attention is done.
  StuColumns free_columns(bool kept, const StuNames& names) const;
  ProgramValue u_of_backward(const StuNames& names = {}) const;
  static StuMatrix duvqk(const StuNames& names = {}) { return names.between("duvqk"); }
  // The columns of `duvqk` behind those of k.
  StuMatrix behind_duvqk(const StuNames& names) const { return {duvqk(names).name, whole_lines(widths_.uvqk())}; }

  const StuWidths& widths() const { return widths_; }
  int64_t width() const { return width_; }  // of x
  DataType dtype() const { return dtype_; }

 private:
  // A product to columns of u, v, q and k that are neighbours, or silu of these. `first` is the first one.
  struct Columns {
    OpSpecPtr spec;
    int64_t first = 0;
  };
  // Where v, q and k of a group of heads lie: in columns that begin there.
  struct GroupPlace {
    ProgramValue v, q, k;
  };

  StuInputSteps(const HstuAttentionParams& attention, const StuInputParams& input, const StuMemoryParams& memory,
                bool silu_uvqk)
      : widths_(attention.heads, attention.attn_dim, attention.hidden_dim, attention.dtype,
                memory.backward_head_groups),
        dtype_(attention.dtype),
        input_(input),
        memory_(memory),
        silu_uvqk_(silu_uvqk) {}

  // Columns of a temporary up to the next one that is aligned for every step: that costs less than slower copies.
  static int64_t whole_lines(int64_t columns) { return round_up(columns, int64_t{8}); }
  // Backward projects to all of uvqk again, at once: attention needs it in both directions, or it is without its silu,
  // which the derivative is of.
  bool has_all_again() const {
    return input_.recompute_uvqk && (silu_uvqk_ || (memory_.recompute_attn && memory_.backward_head_groups == 1));
  }
  // Backward computes u, and v, q and k of one group of heads at a time: it projects again, or applies silu to uvqk.
  bool has_groups_again() const { return silu_uvqk_ || (input_.recompute_uvqk && !has_all_again()); }
  // Where `kept` says that something of it is: of both directions, if they say so, and of no other program.
  bool keeps_uvqk(bool kept) const { return kept && !input_.recompute_uvqk; }
  bool keeps_normed_x(bool kept) const { return kept && !input_.recompute_normed_x; }
  StuMatrix normed_x(const StuNames& names) const { return names.kept("normed_x", width_); }
  // The projection. Forward's has had silu with `silu_uvqk`, unless it is kept.
  StuMatrix uvqk(bool kept, const StuNames& names) const;
  // u, v, q and k as forward's attention and gate read them.
  StuMatrix attended(bool kept, const StuNames& names) const;
  // The gradient of the projection, before its silu with `silu_uvqk`: duvqk is then that of what silu gave.
  StuMatrix dprojection(const StuNames& names) const;
  ProgramValue normed_x_of_backward(const ProgramValue& dx, const StuNames& names) const;
  void add_projection(ProgramBuilder& program, const OpSpecPtr& projection, const ProgramValue& normed_x,
                      const ProgramValue& out, const StuNames& names) const;
  // Columns of u, v, q and k again: of the projection, or silu of them.
  void add_columns(ProgramBuilder& program, const Columns& columns, const ProgramValue& normed_x,
                   const ProgramValue& out, const StuNames& names) const;
  // v, q and k of a group, computed again to `place`, or kept.
  GroupPlace add_group(ProgramBuilder& program, int64_t group, const GroupPlace& place, const ProgramValue& dx,
                       const StuNames& names) const;
  // The columns of all heads' v, q and k, in the order of uvqk, that are a group's.
  GroupPlace columns_of_group(int64_t group, const StuMatrix& uvqk) const;
  void add_attention_backward(ProgramBuilder& program, int64_t group, const GroupPlace& vqk, const StuMatrix& dattn,
                              const StuNames& names) const;
  // Whether the workspace of attention's backward lies in `dx`, where the norm's result is made again for what follows:
  // where groups of heads are to take less memory, or `dx` has nothing else in it.
  bool has_workspace_in_dx(const ProgramValue& dx) const;
  // Where v, q and k of each group lie while attention computes their gradients.
  std::vector<GroupPlace> place_groups(ProgramBuilder& program, const StuMatrix& dattn, const StuNames& names) const;

  StuWidths widths_;
  DataType dtype_;
  int64_t width_ = 0;
  StuInputParams input_;
  StuMemoryParams memory_;
  bool silu_uvqk_;
  OpSpecPtr norm_, norm_of_residual_, projection_, projection_dgrad_, projection_wgrad_, attention_;
  OpSpecPtr silu_;                // of u, or with silu_uvqk_ of all columns
  OpSpecPtr silu_of_projection_;  // a projection and its silu
  // Columns that backward computes again: u, and v, q and k of each group of heads, one by one or, of a single group,
  // together. The attention of a group is `attention_of_group_`.
  Columns u_again_;
  std::vector<std::vector<Columns>> groups_again_;
  OpSpecPtr attention_of_group_;
  OpSpecPtr adding_attention_;  // its backward adds gradients of operands to those of other layers
};

}  // namespace hstujit
