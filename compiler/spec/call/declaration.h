// Where a call says the values of an operator's parameters, and what its gradients are gradients of.
//
// Each operator declares it once, beside its fields, in compiler/spec/operators/<op>/call.cpp:
//
//   void call_silu(CallDeclaration& call) { row_call(call, "x"); }
//
//   void call_addmm(CallDeclaration& call) {
//     call.size("k", {{"mat1", 1}, {"mat2", 0, "transpose_mat2"}, {"mat2", 1, "", "transpose_mat2"}})
//         .dtype("dtype", "input mat1 mat2 dout")
//         .form("input", "beta")
//         .keywords("precision typical_rows transpose_mat2")
//         ...
//
// Lists of names are separated by spaces. A direction skips the arguments that it does not have; a parameter for which
// no argument is left is a keyword of that direction. call/interface.h joins a declaration with the signatures, and
// tests/spec/call_test.cpp compares it with the signatures of random instances.
//
// No source of a kernel depends on a declaration, so no header of an operator includes this one.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hstujit {

// Axes whose size is a parameter.
struct CallAxes {
  const char* arguments;
  int axis = 0;             // -1 is the last one
  const char* unless = "";  // flags: these axes have another size where one of them is true
  const char* when = "";    // a flag: these axes have the size only where it is true
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
  using Names = std::vector<std::string>;
  struct Axes {
    Names arguments;
    int axis = 0;
    Names unless;
    std::string when;
  };

  CallSource source = CallSource::kKeyword;
  std::vector<Axes> axes = {};  // kSize
  // kDtype: those of the type; kPresence: those that are given with true; kForm: those that are given beside it.
  Names arguments = {};
  Names left_out = {};        // kPresence: those that are given with false
  std::string beside = {};    // kPresence: the flag without which it decides nothing; empty: none
  std::string of = {};        // kWanted: the input
  bool shapes = false;        // other values bring other arguments, or leave some out
  bool forward_only = false;  // with another value than the default there is no backward direction
};

class CallDeclaration {
 public:
  using Text = const char*;  // a name, or a list of names; "": none
  using Names = CallParameter::Names;

  // A later declaration of a parameter replaces an earlier one.
  CallDeclaration& size(Text parameter, std::initializer_list<CallAxes> axes);
  CallDeclaration& dtype(Text parameter, Text arguments);
  CallDeclaration& alignment(Text parameter);
  CallDeclaration& presence(Text parameter, Text given, Text left_out = "", Text beside = "");
  CallDeclaration& form(Text parameter, Text beside = "");
  CallDeclaration& wanted(Text parameter, Text input);
  CallDeclaration& of_steps(Text parameter);
  CallDeclaration& keywords(Text parameters);
  // A keyword whose text declares further inputs and their gradients, which no other parameter tells.
  CallDeclaration& declares(Text parameter);

  // These add to the declarations of parameters: CallParameter has the fields.
  CallDeclaration& shaping(Text parameters);
  CallDeclaration& forward_only(Text parameters);

  // Inputs with a gradient among backward's outputs, and outputs with one among its inputs: gradient_name().
  CallDeclaration& gradients(Text inputs);
  CallDeclaration& differentiable(Text outputs);
  // Further arguments of a type, and further inputs with gradients, where some are declared.
  CallDeclaration& more_of_dtype(Text parameter, Text arguments);
  CallDeclaration& more_gradients(Text inputs);
  // Backward does not return the gradient of this input, because it is that of an output, times the argument `factor`
  // if there is one. Only where the parameter, if there is one, has the value.
  CallDeclaration& passed_on(Text input, Text output, Text factor = "", Text parameter = "", Text value = "");
  // The value of a number that a caller may leave out of a call of any instance.
  CallDeclaration& usual(Text argument, double value);
  // The letter for the size of an axis that follows from several parameters and is no product of two.
  CallDeclaration& letter(Text letter, Text argument, int axis);

  struct PassedOn {
    std::string input, output, factor, parameter, value;
  };
  struct Letter {
    std::string letter, argument;
    int axis = 0;
  };

  // Null where nothing was said of it.
  const CallParameter* find(std::string_view parameter) const;
  const std::map<std::string, CallParameter, std::less<>>& parameters() const { return parameters_; }
  const std::string& declares() const { return declares_; }
  const Names& gradients() const { return gradients_; }
  const Names& differentiable() const { return differentiable_; }
  const std::vector<PassedOn>& passed_on() const { return passed_on_; }
  const std::map<std::string, double, std::less<>>& usual() const { return usual_; }
  const std::vector<Letter>& letters() const { return letters_; }

 private:
  CallParameter& declare(const std::string& parameter, CallSource source);

  std::map<std::string, CallParameter, std::less<>> parameters_;
  std::string declares_;
  Names gradients_, differentiable_;
  std::vector<PassedOn> passed_on_;
  std::map<std::string, double, std::less<>> usual_;
  std::vector<Letter> letters_;
};

// "dx" of "x".
std::string gradient_name(std::string_view argument);

// Operators of the row family. `rows` and `outputs` are tensors of rows of `width` elements and type `dtype`; `weights`
// are vectors or tables of `width` elements and type `weight_dtype`. All inputs have gradients.
CallDeclaration& row_call(CallDeclaration& call, const char* rows, const char* weights = "",
                          const char* outputs = "out");
// The same of rows of sequences.
CallDeclaration& sequence_call(CallDeclaration& call, const char* rows, const char* weights = "",
                               const char* outputs = "out");

// One of the operators of this build. The table is generated by CMake.
struct CallEntry {
  std::string_view name;
  void (*declare)(CallDeclaration& call);  // call_<op>
};
const std::vector<CallEntry>& call_table();

}  // namespace hstujit
