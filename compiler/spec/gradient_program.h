// A backward direction that is a program of other operators, of an operator whose forward direction has kernels.
//
//   class Split2dJaggedSpec : ... {
//     std::shared_ptr<const GradientProgram> gradient() const;  // null where this instance has none
//   };
//
// Functions that parse an operator call set_gradient() with that. A spec that is a step of a gradient has none of its
// own: it is asked for one direction only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/spec/program_spec.h"

namespace hstujit {

class GradientProgram final : public ProgramSpec {
 public:
  explicit GradientProgram(Program backward) : ProgramSpec({}, std::move(backward)) {}
  // The forward direction of one other operator, whose arguments are called otherwise.
  GradientProgram(OpSpecPtr spec, const std::map<std::string, ProgramValue>& operands);

  // Name of the first step's operator: a gradient is never looked up by its own name.
  std::string_view op() const override;
  nlohmann::ordered_json to_json() const override;
};

// A spec whose backward direction is that of a GradientProgram, where one is set, and else that of Base.
template <typename Base>
class WithGradientProgram : public Base {
 public:
  using Base::Base;

  void set_gradient(std::shared_ptr<const GradientProgram> gradient) { gradient_ = std::move(gradient); }

  const Program* program(Direction direction) const override {
    return by_program(direction) ? gradient_->program(direction) : Base::program(direction);
  }
  Signature signature(Direction direction) const override {
    return by_program(direction) ? gradient_->signature(direction) : Base::signature(direction);
  }
  Work work(Direction direction, const Lengths& lengths) const override {
    return by_program(direction) ? gradient_->work(direction, lengths) : Base::work(direction, lengths);
  }
  double error_bound(Direction direction) const override {
    return by_program(direction) ? gradient_->error_bound(direction) : Base::error_bound(direction);
  }

 protected:
  bool has_gradient() const { return gradient_ != nullptr; }
  bool by_program(Direction direction) const { return direction == Direction::kBackward && has_gradient(); }

 private:
  std::shared_ptr<const GradientProgram> gradient_;
};

}  // namespace hstujit
