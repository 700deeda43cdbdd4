// The functions of Python's stable ABI that this library calls, found by name in the process. So building this needs no
// Python, and one file serves every version from 3.10.
#pragma once

#include <cstddef>

struct PyMethodDef;
struct PyObject;
struct PyThreadState;

// Result, name and arguments, as Python's headers declare them; Py_ssize_t is std::ptrdiff_t.
#define HSTUJIT_PYTHON_FUNCTIONS(X)                                              \
  X(void, Py_IncRef, (PyObject*))                                                \
  X(void, Py_DecRef, (PyObject*))                                                \
  X(void, PyErr_Clear, ())                                                       \
  X(void, PyErr_SetString, (PyObject*, const char*))                             \
  X(PyObject*, PyErr_Occurred, ())                                               \
  X(PyThreadState*, PyEval_SaveThread, ())                                       \
  X(void, PyEval_RestoreThread, (PyThreadState*))                                \
  X(PyObject*, PyObject_Type, (PyObject*))                                       \
  X(PyObject*, PyObject_GetAttr, (PyObject*, PyObject*))                         \
  X(PyObject*, PyObject_CallNoArgs, (PyObject*))                                 \
  X(PyObject*, PyObject_CallFunctionObjArgs, (PyObject*, ...))                   \
  X(int, PyObject_IsTrue, (PyObject*))                                           \
  X(double, PyFloat_AsDouble, (PyObject*))                                       \
  X(long long, PyLong_AsLongLong, (PyObject*))                                   \
  X(const char*, PyUnicode_AsUTF8AndSize, (PyObject*, std::ptrdiff_t*))          \
  X(PyObject*, PyUnicode_DecodeUTF8, (const char*, std::ptrdiff_t, const char*)) \
  X(int, PyUnicode_Compare, (PyObject*, PyObject*))                              \
  X(std::ptrdiff_t, PyTuple_Size, (PyObject*))                                   \
  X(PyObject*, PyTuple_GetItem, (PyObject*, std::ptrdiff_t))                     \
  X(PyObject*, PyTuple_New, (std::ptrdiff_t))                                    \
  X(int, PyTuple_SetItem, (PyObject*, std::ptrdiff_t, PyObject*))                \
  X(PyObject*, PyDict_New, ())                                                   \
  X(int, PyDict_SetItem, (PyObject*, PyObject*, PyObject*))                      \
  X(PyObject*, PyList_New, (std::ptrdiff_t))                                     \
  X(int, PyList_SetItem, (PyObject*, std::ptrdiff_t, PyObject*))                 \
  X(PyObject*, PyList_GetItem, (PyObject*, std::ptrdiff_t))                      \
  X(PyObject*, PyList_AsTuple, (PyObject*))                                      \
  X(int, PySet_Contains, (PyObject*, PyObject*))                                 \
  X(PyObject*, PyDict_GetItemString, (PyObject*, const char*))                   \
  X(PyObject*, PyLong_FromLongLong, (long long))                                 \
  X(PyObject*, PyUnicode_InternFromString, (const char*))                        \
  X(PyObject*, PyCFunction_NewEx, (PyMethodDef*, PyObject*, PyObject*))          \
  X(void*, PyCapsule_GetPointer, (PyObject*, const char*))                       \
  X(PyObject*, PyCapsule_New, (void*, const char*, void (*)(PyObject*)))

namespace hstujit::torch {

struct PythonFunctions {
#define HSTUJIT_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  HSTUJIT_PYTHON_FUNCTIONS(HSTUJIT_MEMBER)
#undef HSTUJIT_MEMBER
};

}  // namespace hstujit::torch
