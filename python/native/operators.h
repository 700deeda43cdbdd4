// The operators of the library as PyTorch's dispatcher calls them: names, schemas and the order of arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hstujit/hstujit.h"

namespace hstujit::torch {

inline constexpr int kMaxArguments = 80;  // of a call, with the tensors that a text declares, and of a launch
inline constexpr int kMaxOutputs = 32;    // of a schema, and of a launch
inline constexpr int kMaxRank = 8;        // of an output

// One argument of a schema, in its order.
struct Slot {
  std::string name;
  hstujit_given_kind kind = HSTUJIT_GIVEN_INTEGER;
  bool is_optional = false;   // the dispatcher hands it over in a box, or as 0
  bool is_required = false;   // a tensor that every call has
  bool is_parameter = false;  // the instance follows from the value
};

// A size that an instance is made for.
struct Axis {
  int slot, axis;
  bool operator==(const Axis&) const = default;
};

// One direction of an operator.
struct Operator {
  std::string op;
  hstujit_direction direction = HSTUJIT_FORWARD;
  std::string name, schema;
  std::vector<Slot> slots;
  std::vector<std::string> outputs;
  std::string declares;        // the parameter whose text declares tensors; empty: there is none
  int declared = -1;           // the slot of a list of them, which is none of a single value
  bool lists_outputs = false;  // the gradients of those tensors behind all others
  int first = 0;               // the tensor whose device counts
  std::vector<Axis> axes;
  std::vector<int> forms;  // tensors that may be one number

  Operator() = default;
  Operator(Operator&&) = default;
  Operator(const Operator&) = delete;

  // The number of slots where there is none of this name.
  int slot_of(std::string_view wanted) const;
};

// Every operator and direction, as hstujit_operators describes them. Throws a std::exception where that fails.
std::vector<Operator> all_operators();

}  // namespace hstujit::torch
