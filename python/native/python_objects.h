// What calls from Python need of Python and PyTorch: it stays as long as the process.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "hstujit/dlpack.h"
#include "python/native/python_functions.h"

namespace hstujit::torch {

#define HSTUJIT_PYTHON_OBJECTS(X)                                                                                     \
  X(none)                                                                                                             \
  X(not_implemented)                                                                                                  \
  X(true_)                                                                                                            \
  X(false_)                                                                                                           \
  X(tensor) /* types */                                                                                               \
  X(parameter)                                                                                                        \
  X(float_)                                                                                                           \
  X(int_)                                                                                                             \
  X(str)                                                                                                              \
  X(runtime_error)                                                                                                    \
  X(profilers) /* a list of callables, and one more: a call is left to PyTorch where one returns something true */    \
  X(guards)                                                                                                           \
  X(level_of) /* an object and the name of its attribute: at least 0 in forward-mode differentiation */               \
  X(level)                                                                                                            \
  X(is_grad_enabled)      /* callable */                                                                              \
  X(requires_grad)        /* the name of an attribute */                                                              \
  X(is_neg)               /* callable, of a tensor */                                                                 \
  X(kernels)              /* a set of texts: the kernels that torch.library registered, "hstujit/silu/CPU" */         \
  X(tensors_from_handles) /* callable: tensors of a list of capsules with an AtenTensorHandle each, which it takes */ \
  X(exchange_api)         /* capsule of PyTorch's DLPackExchangeAPI */

// PyMethodDef of Python's stable ABI.
struct Method {
  const char* name;
  PyObject* (*function)(PyObject*, PyObject* const*, std::ptrdiff_t, PyObject*);
  int flags;
  const char* doc;
};
inline constexpr int kFastcallWithKeywords = 0x80 | 0x02;  // METH_FASTCALL | METH_KEYWORDS

// How Python calls an operator.
struct Names {
  std::vector<PyObject*> names;  // of each slot
  // Members of `kernels` whose presence means that somebody has replaced the operator's kernels.
  std::vector<PyObject*> overrides;
  PyObject* otherwise = nullptr;
  Method method;
};

// Null members before open_python().
struct Python {
  PythonFunctions functions;
#define HSTUJIT_MEMBER(name) PyObject* name = nullptr;
  HSTUJIT_PYTHON_OBJECTS(HSTUJIT_MEMBER)
#undef HSTUJIT_MEMBER
  std::vector<PyObject*> callables;  // profilers, then the other guards
  std::size_t profiler_count = 0;
  std::vector<std::unique_ptr<Names>> names;  // by operator
};

Python& python();

// Takes a dict of the objects above. Throws where Python or PyTorch lacks something.
void open_python(PyObject* objects);

// A new reference, which may be none.
class Reference {
 public:
  explicit Reference(PyObject* object) : object_(object) {}
  ~Reference() {
    if (object_) python().functions.Py_DecRef(object_);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

}  // namespace hstujit::torch
