// Calls of operators from Python that do not go through PyTorch's dispatcher, which takes two of five us.
#pragma once

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
  std::vector<PyObject*> overrides;
  PyObject* otherwise = nullptr;
};

// The arguments of a function of Python with METH_FASTCALL and METH_KEYWORDS.
struct Passed {
  PyObject* const* values;  // without a keyword, then with one
  std::size_t positional;
  PyObject* keywords;  // a tuple, or nullptr
};

Python& python();

enum class Caller {
  kAnyone,
  kKernel,  // of autograd's: it knows that nothing but the operator's kernels is left to be called
};

// The operator's outputs, where nothing but its kernels has a say in the call and every argument is of the plainest
// type. Else what `otherwise` returns of anyone's call, and NotImplemented of a kernel's. nullptr with an exception of
// Python.
PyObject* call_directly(std::size_t op, Caller caller, const Names& names, const Passed& passed);

}  // namespace hstujit::torch
