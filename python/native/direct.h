// Calls of operators from Python that do not go through PyTorch's dispatcher, which takes two of five us.
#pragma once

#include <cstddef>

#include "hstujit/dlpack.h"
#include "python/native/python_functions.h"

namespace hstujit::torch {

// A new reference. `otherwise` is null for a kernel of autograd's, which knows that nothing but the operator's kernels
// is left to be called.
PyObject* make_function(std::size_t index, PyObject* otherwise);

// Sets Functions::dltensor_from_py_object.
void set_view(int (*view)(void* tensor, DLTensor* to));

}  // namespace hstujit::torch
