// Where a call says the values of an operator's parameters, and what its gradients are gradients of.
//
// Each operator declares it once, beside its fields, in compiler/spec/operators/<op>/call.cpp:
//
//   CallDeclaration call_silu() { return row_call("x"); }
//
//   CallDeclaration call_addmm() {
//     return CallDeclaration()
//         .size("k", {{"mat1", 1}, {"mat2", 0, "transpose_mat2"}, {"mat2", 1, "", "transpose_mat2"}})
//         .dtype("dtype", "input mat1 mat2 dout")
//         .form("input")
//         .keywords("precision typical_rows transpose_mat2")
//         ...
//
// Lists of names are separated by spaces. A direction skips the arguments that it does not have; a parameter for which
// no argument is left is a keyword of that direction. call/interface.h joins a declaration with the signatures, and
// tests/spec/call_test.cpp compares it with the signatures of random instances.
//
// No source of a kernel depends on a declaration, so no header of an operator includes this one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/json_text.h"

namespace hstujit {

// Axes whose size is a parameter.
struct CallAxes {
  std::string arguments;
  int axis = 0;             // -1 is the last one
  std::string unless = {};  // flags: these axes have another size where one of them is true
  std::string when = {};    // a flag: these axes have the size only where it is true
};

enum class CallSource {
  kKeyword,    // the caller gives the value
  kSize,       // the size of an axis
  kDtype,      // the data type of arguments
  kAlignment,  // what addresses and strides of all tensors are multiples of
  kPresence,   // whether arguments are given
  kForm,       // which shape the argument of the same name has; the parameter's default where it is not given
  kWanted,     // whether the gradient of an input is wanted
  kSteps,      // no call gives it: it is for the steps of programs
};

struct CallParameter {
  CallSource source = CallSource::kKeyword;
  std::vector<CallAxes> axes = {};  // kSize
  // kDtype: those of the type; kPresence: those that are given with true; kForm: those that are given beside it.
  std::vector<std::string> arguments = {};
  std::vector<std::string> left_out = {};  // kPresence: those that are given with false
  std::string beside = {};                 // kPresence: the flag without which it decides nothing; empty: none
  std::string of = {};                     // kWanted: the input
  bool shapes = false;                     // other values bring other arguments, or leave some out
  bool forward_only = false;               // with another value than the default there is no backward direction
};

// An input whose gradient backward does not return, because it is that of an output, times a number.
struct PassedOn {
  std::string input, output;
  std::string factor = {};     // a number of the call; empty: 1
  std::string parameter = {};  // only where this parameter has the value; empty: always
  Json value = {};
};

class CallDeclaration {
 public:
  // A later declaration of a parameter replaces an earlier one.
  CallDeclaration& size(const std::string& parameter, std::vector<CallAxes> axes);
  CallDeclaration& dtype(const std::string& parameter, std::string_view arguments);
  CallDeclaration& alignment(const std::string& parameter);
  CallDeclaration& presence(const std::string& parameter, std::string_view given, std::string_view left_out = {},
                            const std::string& beside = {});
  CallDeclaration& form(const std::string& parameter, std::string_view beside = {});
  CallDeclaration& wanted(const std::string& parameter, const std::string& input);
  CallDeclaration& of_steps(const std::string& parameter);
  CallDeclaration& keywords(std::string_view parameters);

  // These add to what was said of parameters: CallParameter has the fields.
  CallDeclaration& shaping(std::string_view parameters);
  CallDeclaration& forward_only(std::string_view parameters);

  // Inputs with a gradient among backward's outputs, and outputs with one among its inputs: gradient_name().
  CallDeclaration& gradients(std::string_view inputs);
  CallDeclaration& differentiable(std::string_view outputs);
  CallDeclaration& passed_on(PassedOn input);
  // The value of a number that a caller may leave out of a call of any instance.
  CallDeclaration& usual(const std::string& argument, double value);
  // The letter for the size of an axis that follows from several parameters and is no product of them.
  CallDeclaration& letter(const std::string& letter, const std::string& argument, int axis);

  struct Letter {
    std::string letter, argument;
    int axis = 0;
  };

  // Null where nothing was said of it.
  const CallParameter* find(std::string_view parameter) const;
  const std::map<std::string, CallParameter, std::less<>>& parameters() const { return parameters_; }
  const std::vector<std::string>& gradients() const { return gradients_; }
  const std::vector<std::string>& differentiable() const { return differentiable_; }
  const std::vector<PassedOn>& passed_on() const { return passed_on_; }
  const std::map<std::string, double, std::less<>>& usual() const { return usual_; }
  const std::vector<Letter>& letters() const { return letters_; }

 private:
  CallDeclaration& declare(const std::string& parameter, CallParameter source);

  std::map<std::string, CallParameter, std::less<>> parameters_;
  std::vector<std::string> gradients_, differentiable_;
  std::vector<PassedOn> passed_on_;
  std::map<std::string, double, std::less<>> usual_;
  std::vector<Letter> letters_;
};

// The names of a list that spaces separate.
std::vector<std::string> names_in(std::string_view list);
// "dx" of "x".
std::string gradient_name(std::string_view argument);
// The same for each name of a list.
std::string gradient_names(std::string_view arguments);

// Operators of the row family. `rows` and `outputs` are tensors of rows of `width` elements and type `dtype`; `weights`
// are vectors or tables of `width` elements and type `weight_dtype`. All inputs have gradients.
CallDeclaration row_call(const std::string& rows, const std::string& weights = {}, const std::string& outputs = "out");
// The same of rows of sequences.
CallDeclaration sequence_call(const std::string& rows, const std::string& weights = {},
                              const std::string& outputs = "out");

// One of the operators of this build. The table is generated by CMake.
struct CallEntry {
  std::string_view name;
  CallDeclaration (*declare)();  // call_<op>
};
const std::vector<CallEntry>& call_table();

}  // namespace hstujit
