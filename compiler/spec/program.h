// A program: an operator that is other operators in order, launched as one.
//
// Each step has the kernels, the keys and the tuning of its operator used alone. What one step leaves to another lies
// in temporaries, rounded once to the data type that both operators name. A temporary lives from the first step that
// writes it to the last one that reads it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/op_spec.h"

namespace hstujit {

// Where a step finds one of its arguments: all of a value, or neighbouring columns of its rows.
struct ProgramOperand {
  int value = 0;  // of the program's arguments, then of its temporaries
  bool columns = false;
  int64_t first_column = 0;  // in elements
};

struct ProgramStep {
  std::string name;  // the operator's, "layer_norm", with a number where an earlier one has another spec
  OpSpecPtr spec;
  Direction direction = Direction::kForward;
  std::vector<ProgramOperand> operands;  // by argument of the step's signature
};

struct Program {
  Signature arguments;
  Signature temporaries;  // tensors
  std::vector<ProgramStep> steps;

  const Argument& value(int index) const;
  bool is_temporary(int index) const { return index >= static_cast<int>(arguments.size()); }
};

// What a step calls one of its arguments elsewhere: by that name, or columns of the rows (L, ...) of that value.
struct ProgramValue {
  std::string name;
  int64_t first_column = -1;  // -1: all of it
  std::string_view doc = {};  // what it is in the program; empty: what the step says of its argument
};

// Puts a program together, step by step. The steps' arguments are the program's own, under their names, unless a step
// says that one of them is something else; axes that follow it are the program's, too. Inputs come first, in the order
// in which steps name them, then outputs.
class ProgramBuilder {
 public:
  // A tensor between steps, of the rows L. `columns`: elements of one.
  ProgramBuilder& temporary(std::string name, DataType dtype, int64_t columns);
  // `operands`: by name of the step's argument.
  ProgramBuilder& step(OpSpecPtr spec, Direction direction, const std::map<std::string, ProgramValue>& operands = {});
  Program finish();

 private:
  std::string step_name(const OpSpec& spec) const;

  // Of steps, with values by name until all arguments are known.
  std::vector<ProgramStep> steps_;
  std::vector<std::vector<ProgramValue>> values_;
  Signature inputs_, outputs_, temporaries_;
};

}  // namespace hstujit
