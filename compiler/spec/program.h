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

// Where a step finds one of its arguments: in a value, or in one of those that it stacks along its first axis, all of
// it, neighbouring columns of its rows or elements of a vector; or it is a number that is the same in all launches.
struct ProgramOperand {
  static constexpr int kNumber = -1;

  int value = 0;  // of the program's arguments, then of its temporaries; kNumber: `number`
  bool columns = false;
  int64_t first_column = 0;  // in elements
  int64_t index = -1;        // of the first axis, which the step's argument lacks; -1: it has it
  double number = 0;         // of an integer's value: what is added to it
  bool for_now = false;      // an output: a later step writes the final values over these

  bool is_number() const { return value == kNumber; }
  bool is_whole() const { return !is_number() && !columns && index < 0; }
};

struct ProgramStep {
  std::string name;  // the operator's, "layer_norm", with a number where an earlier one has another spec (ProgramSpec)
  OpSpecPtr spec;
  Direction direction = Direction::kForward;
  Signature signature;                            // the spec's, of that direction
  std::vector<ProgramOperand> operands;           // by argument of the signature
  std::string rows = std::string(kSequenceAxis);  // the axis of the program whose rows are the step's L
  int workspace_in = kOwnWorkspace;               // the value in which its workspace lies, where that has the room

  static constexpr int kOwnWorkspace = -1;
};

struct Program {
  Signature arguments;
  Signature temporaries;  // tensors
  std::vector<ProgramStep> steps;

  const Argument& value(int index) const;
  bool is_temporary(int index) const { return index >= static_cast<int>(arguments.size()); }
};

// Value of an argument of a step in the program: a value by that name, or a part of it as ProgramOperand has them, or,
// where it has no name, a number.
struct ProgramValue {
  std::string name;
  int64_t first_column = -1;  // -1: all of it
  std::string_view doc = {};  // what it is in the program; empty: what the step says of its argument
  double constant = 0;        // of an integer: what is added to it
  int64_t index = -1;         // -1: all of it
  bool is_for_now = false;    // an output of the program lends its memory: its final values follow (program_writes.h)

  ProgramValue for_now() const {
    ProgramValue lent = *this;
    lent.is_for_now = true;
    return lent;
  }
  static ProgramValue number(double constant) { return {{}, -1, {}, constant}; }
};
using ProgramValues = std::map<std::string, ProgramValue>;  // by name of the step's argument

// Puts a program together, step by step. The steps' arguments are the program's own, under their names, unless a step
// says that one of them is something else; axes that follow it are the program's, too. Inputs come first, in the order
// in which steps name them, then outputs.
class ProgramBuilder {
 public:
  // A tensor between steps, of the rows L. `columns`: elements of one.
  ProgramBuilder& temporary(std::string name, DataType dtype, int64_t columns);
  // A tensor of that shape among the program's own arguments, of which steps take parts.
  ProgramBuilder& tensor(ArgumentRole role, std::string name, DataType dtype, std::vector<Dimension> shape,
                         std::string_view doc);
  // One of rows of sequences, which begin where `offsets` says.
  ProgramBuilder& matrix(ArgumentRole role, std::string name, DataType dtype, int64_t columns, std::string offsets,
                         std::string_view doc);
  // Sets L of the temporaries and of steps without sequences that follow; it is L before the first call.
  ProgramBuilder& rows(Dimension rows);
  // Values of which steps take one of the first axis have so many.
  ProgramBuilder& stacked(int64_t count);
  // Inputs, and outputs, that come first, in this order; the others follow.
  ProgramBuilder& inputs(std::vector<std::string> names);
  ProgramBuilder& outputs(std::vector<std::string> names);
  ProgramBuilder& step(OpSpecPtr spec, Direction direction, const ProgramValues& operands = {});
  // The workspace of the step before may lie in this value, an output or a temporary that is no argument of the step
  // and is written anew before it is read again.
  ProgramBuilder& workspace_in(std::string value);
  // Throws std::logic_error where find_lost_write() finds something: such a program is a bug of the library.
  Program finish();

 private:
  // Steps, with values by name until all arguments are known.
  std::vector<ProgramStep> steps_;
  std::vector<std::vector<ProgramValue>> values_;
  std::vector<std::string> workspaces_;  // empty: of its own
  std::vector<std::string> first_inputs_, first_outputs_;
  int64_t stacked_ = 0;
  Dimension rows_ = Dimension::of(std::string(kSequenceAxis));
  Signature inputs_, outputs_, temporaries_;
};

}  // namespace hstujit
