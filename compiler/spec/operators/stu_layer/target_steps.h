// stu_layer with targets_only, as programs: keys and values of all rows, and all else of the last rows of each
// sequence.
#pragma once

#include <optional>
#include <string>

#include "compiler/spec/operators/stu_layer/input_steps.h"
#include "compiler/spec/operators/stu_layer/output_steps.h"
#include "compiler/spec/operators/stu_layer/spec.h"

namespace hstujit {

class StuTargetSteps {
 public:
  // Nothing where there are mistakes.
  static std::optional<StuTargetSteps> make(const StuLayerParams& params, const std::string& path, Mistakes& mistakes);

  Program forward() const;
  Program backward() const;

 private:
  // Columns of u, v, q or k: where they begin in the weights, and in the matrix of those that have the same rows.
  struct Part {
    int64_t first_weight = 0, first = 0, columns = 0;
    OpSpecPtr projection, silu_of_projection, dgrad, wgrad;
  };
  // u and q of the last rows, or v and k of all: a matrix of neighbouring columns, and silu of it where layers have
  // that.
  struct Pair {
    const char* name;  // of the matrix
    Part first = {}, second = {};
    OpSpecPtr silu = nullptr;
    bool kept = false;  // forward gives the projection, in the argument that has all of u, v, q and k in a whole layer
    int64_t columns() const { return first.columns + second.columns; }
    StuMatrix projection() const { return {kept ? "uvqk" : name}; }
  };

  StuTargetSteps(const StuLayerParams& params, const StuInputSteps& input, const StuOutputSteps& output)
      : params_(params), input_(input), output_(output) {}

  bool is_kept(bool recomputed) const { return params_.training && !recomputed; }
  // Declares what both directions have: rows, weights, and what forward gives and backward takes.
  void declare(ProgramBuilder& program, ArgumentRole kept) const;
  // The rows of a pair's steps: plain ones, all of which count.
  void set_rows(ProgramBuilder& program, bool last) const;
  StuMatrix project_to(ProgramBuilder& program, const Pair& pair, const ProgramValue& normed_x,
                       OpSpecPtr Part::* projection) const;
  // Projects rows to a pair's matrix, as attention and gate read it.
  StuMatrix project(ProgramBuilder& program, const Pair& pair, const ProgramValue& normed_x) const;
  // The same in backward, where the derivative of silu asks for the projection, too.
  StuMatrix project_again(ProgramBuilder& program, const Pair& pair, const ProgramValue& normed_x) const;
  // Applies silu to a pair's projection, in a layer that has that.
  StuMatrix activate(ProgramBuilder& program, const Pair& pair, const StuMatrix& projection) const;
  // Gives the gradient of the projection from that of the matrix.
  StuMatrix silu_backward(ProgramBuilder& program, const Pair& pair, const StuMatrix& gradient) const;
  void attend(ProgramBuilder& program, const StuMatrix& uq, const StuMatrix& vk, const ProgramValue& attn) const;
  // Takes the last rows of a tensor to a temporary of that name.
  ProgramValue take_last(ProgramBuilder& program, const ProgramValue& rows, const std::string& name) const;
  // Places last rows behind zeros, in a temporary of that name.
  ProgramValue place_last(ProgramBuilder& program, const ProgramValue& last, const std::string& name) const;
  // Adds gradients of a pair's weights, and gives the gradient of the norm's result, with `added` in it if there is
  // one.
  ProgramValue project_backward(ProgramBuilder& program, const Pair& pair, const StuMatrix& gradient,
                                const ProgramValue& normed_x, const std::optional<ProgramValue>& added) const;

  StuLayerParams params_;
  StuInputSteps input_;
  StuOutputSteps output_;
  Pair uq_{"uq"}, vk_{"vk"};
  OpSpecPtr attention_, take_, place_;
};

}  // namespace hstujit
