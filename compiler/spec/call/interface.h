// The arguments of all calls of one direction of an operator, and where each parameter's value comes from: the
// operator's declaration (call/declaration.h) joined with the signatures of the instances that it tells apart. Bindings
// are made from this.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/spec/call/declaration.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

struct CallArgument {
  Argument argument;               // of one of the instances that have it
  std::vector<std::string> shape;  // in terms of parameters: "L", "heads", "heads*attn_dim", "1"
  bool optional = false;           // some instance does not have it
  std::optional<double> usual;     // of a number that may be left out of every call
  std::string gradient_of;         // the argument of the forward direction whose gradient it is; empty: none
  std::string wanted;              // of a gradient: the parameter that says whether it is computed; empty: always
};

// An axis of an input. The first one counts whose conditions hold and whose input is given.
struct CallAxis {
  std::string argument;
  int axis = 0;  // from the front
  std::vector<std::string> unless;
  std::string when;
};

struct CallForm {
  std::string value;
  std::vector<std::string> shape;
};

// Parameters by name, each with where its value comes from. Lists of inputs have the required ones first, then the
// others, each in launch order.
struct CallInterface {
  template <typename Source>
  using OfParameters = std::vector<std::pair<std::string, Source>>;
  struct Presence {
    std::vector<std::string> given, left_out;
  };

  std::vector<CallArgument> arguments;  // that some instance has, in launch order, inputs first
  OfParameters<std::vector<CallAxis>> sizes;
  OfParameters<std::vector<std::string>> dtypes;
  OfParameters<Presence> presences;
  OfParameters<std::vector<CallForm>> forms;
  std::string alignment;              // the parameter; empty: there is none
  std::vector<std::string> keywords;  // that callers give
  std::string declares;               // the keyword whose text declares inputs beside `arguments`; empty: there is none
  std::vector<std::pair<std::string, std::string>> rows;  // symbols that no input tells, and the keyword that does

  const CallArgument* find(std::string_view name) const;
  // Inputs in the order of calls: what is required, in launch order, then tensors, then numbers, then a seed's tensor,
  // since calls by position are older than it.
  std::vector<const CallArgument*> call_order() const;
};

// The interfaces of both directions of an operator.
struct OperatorCall {
  CallDeclaration declaration;
  std::optional<CallInterface> forward, backward;

  const std::optional<CallInterface>& of(Direction direction) const {
    return direction == Direction::kForward ? forward : backward;
  }
};

// `op` must be one of operator_names(). kInternal where the declaration does not fit the operator's parameters.
Result<OperatorCall> operator_call(std::string_view op);

}  // namespace hstujit
