// The half of a layer behind attention, as steps of a program: the attention output normalised, gated with u and
// dropped out, the projection of that, and the residual.
#pragma once

#include <optional>
#include <string>

#include "compiler/spec/operators/hstu_attention/query_rows.h"
#include "compiler/spec/operators/stu_layer/params.h"
#include "compiler/spec/program.h"

namespace hstujit {

// Values that the half computes with, besides StuParams and StuOutputParams.
struct StuGate {
  int64_t heads = 1, hidden_dim = 0;
  DataType dtype = DataType::kBf16;
  MatmulPrecision precision = MatmulPrecision::kTf32;
  bool silu_u = false;  // on the columns of u that y begins with
  std::string mul_u_activation = "none";
  bool residual = true;      // x is added to the result
  bool row_numbers = false;  // launches say by which number of a row dropout is drawn
  int64_t alignment = 16;    // of u and y, where they are columns of others

  // P has the parameters of a whole layer. Its u is before silu, unless all of the projection has had it.
  template <typename P>
  static StuGate of_layer(const P& params) {
    const bool silu = !params.silu_uvqk;
    StuGate gate{params.heads,           params.hidden_dim, params.dtype, params.precision, silu && params.concat_u,
                 silu ? "silu" : "none", params.residual};
    if constexpr (requires { params.row_numbers; }) gate.row_numbers = params.row_numbers;
    gate.alignment = StuWidths(params.heads, params.attn_dim, params.hidden_dim, params.dtype).alignment;
    return gate;
  }
};

class StuOutputSteps {
 public:
  // Nothing where there are mistakes.
  static std::optional<StuOutputSteps> make(const StuGate& gate, const StuParams& stu, const StuOutputParams& output,
                                            const std::string& path, Mistakes& mistakes);

  // Declares what forward gives and backward takes, of so many layers and of these rows.
  void keep(ProgramBuilder& program, ArgumentRole role, int64_t layers = 1, const Dimension& rows = key_rows()) const;

  // `attn` and `u` to `y`, which is an output of the program where `kept`; y and x to `out`. y that is not kept lies in
  // `free` where that has as many columns.
  void compute(ProgramBuilder& program, const ProgramValue& attn, const ProgramValue& u, bool kept,
               const StuColumns& free = {}, const ProgramValue& x = {"x", -1, "rows, added to the projection"},
               const ProgramValue& out = {"out"}, const StuNames& names = {}) const;
  // `dout` to the gradients of all of it but of x, which is dout itself. y, and then its gradient, lie in `free` where
  // that has as many columns.
  void compute_backward(ProgramBuilder& program, const ProgramValue& attn, const ProgramValue& u,
                        const ProgramValue& dattn, const ProgramValue& du, const StuColumns& free,
                        const ProgramValue& dout = {"dout", -1, "gradient of the result"},
                        const StuNames& names = {}) const;

  int64_t v_columns() const { return v_; }
  bool has_residual() const { return residual_; }

 private:
  bool keeps_y(bool kept) const { return kept && !output_.recompute_y; }
  // In `free`, or a temporary of that name.
  ProgramValue place_y(ProgramBuilder& program, const std::string& name, const StuColumns& free,
                       const StuNames& names) const;
  void add_gate(ProgramBuilder& program, const ProgramValue& attn, const ProgramValue& u, const ProgramValue& y,
                const StuNames& names) const;

  int64_t v_ = 0;          // columns of attn and u
  int64_t y_columns_ = 0;  // of y
  DataType dtype_ = DataType::kBf16;
  bool residual_ = true;
  StuOutputParams output_;
  OpSpecPtr gate_, projection_, projection_dgrad_, projection_wgrad_;
};

}  // namespace hstujit
