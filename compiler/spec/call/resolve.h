// The instance that a call is: from the data types, the sizes and the presence of its arguments, and its keywords. The
// C API, Python and the library for PyTorch ask this one place.
//
// Values of numbers, addresses and strides decide nothing here: calls that differ in those alone are the same instance.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/spec/call/interface.h"
#include "compiler/support/json.h"

namespace hstujit {

// One direction of an operator, as its callers see it.
struct CallFunction {
  std::string op;
  Direction direction = Direction::kForward;
  CallInterface interface;
  Json properties;  // the JSON Schema of each parameter

  // Name of the function: the operator's, with "_backward" behind it for that direction.
  std::string name() const { return direction == Direction::kForward ? op : op + "_backward"; }
  // Inputs whose presence alone decides the instance, so that one may be given beside what follows from it: uvqk_bias
  // beside uvqk.
  std::set<std::string, std::less<>> deciding() const;
};

// Both directions of an operator, made once per process. kInvalidArgument for a name that no operator has, and
// kUnsupported for a direction that it does not have.
Result<const CallFunction*> call_function(std::string_view op, Direction direction);

struct GivenTensor {
  std::vector<int64_t> shape;  // -1: a size that is not known, because the call is traced
  std::string dtype;           // "bf16", or the name of any other type
};

// The arguments of a call, by name. An input that the text of CallInterface::declares declares may be given by its
// place there, too: "operands[0]" is the first one.
struct GivenCall {
  std::map<std::string, GivenTensor, std::less<>> tensors;
  std::set<std::string, std::less<>> numbers;  // inputs that are numbers
  Json keywords = Json::object();              // parameters; a default counts as not given
  std::set<std::string, std::less<>> rows;     // keywords of CallInterface::rows

  bool has(std::string_view input) const { return tensors.contains(input) || numbers.contains(input); }
};

struct ResolvedCall {
  Json instance;  // {"op": "silu", "width": 64, ...}, but for the alignment
  OpSpecPtr spec;
  Signature signature;
};

// Checks data types and ranks, too. Sizes that tensors share are left to the launch.
Result<ResolvedCall> resolve_call(const CallFunction& function, const GivenCall& given);

// Elements that rows of a new output begin at multiples of: the least that some kernel of the operator takes.
int64_t row_elements(const CallFunction& function, const Argument& output);

}  // namespace hstujit
