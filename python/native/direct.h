// Calls of operators from Python that do not go through PyTorch's dispatcher, which takes longer than all the rest.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "python/native/arguments.h"
#include "python/native/python_functions.h"

namespace hstujit::torch {

// What hstujit_torch_open_python was given.
struct Python {
  PythonFunctions functions;
  hstujit_torch_python objects{};
  std::vector<PyObject*> guards;
  std::size_t profilers = 0;  // the first guards
};

// How Python calls an operator.
struct Names {
  std::vector<PyObject*> names;               // of each slot
  std::vector<hstujit_torch_value> defaults;  // of each slot
  std::size_t positional = 0;
};

Python& python();

enum class Caller {
  kAnyone,
  kKernel,  // of autograd's: it knows that nothing but the operator's kernels is left to be called
};

// The operator's outputs; `recorded` where autograd is to record anyone's call; NotImplemented where anything else has
// a say in it, or where an argument is not of the plainest type: then the dispatcher decides. nullptr with an exception
// of Python.
PyObject* call_directly(std::size_t op, Caller caller, const Names& names, PyObject* const* values,
                        std::size_t positional, PyObject* keywords);

}  // namespace hstujit::torch
