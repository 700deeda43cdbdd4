#include "python/native/python_objects.h"

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "python/native/direct.h"

namespace hstujit::torch {
namespace {

// DLPackExchangeAPI of DLPack 1.x.
struct ExchangeApi {
  std::uint32_t major, minor;
  void *older, *allocator, *managed_tensor_from_py_object, *managed_tensor_to_py_object;
  int (*dltensor_from_py_object)(void* tensor, DLTensor* to);
  void* current_work_stream;
};

void add_callables(PyObject* list) {
  Python& opened = python();
  for (std::ptrdiff_t at = 0; PyObject* callable = opened.functions.PyList_GetItem(list, at); ++at)
    opened.callables.push_back(callable);
  opened.functions.PyErr_Clear();  // of the place behind the last one
}

}  // namespace

Python& python() {
  static Python* const kept = new Python;
  return *kept;
}

void open_python(PyObject* objects) {
  Python opened;
  void* const process = dlopen(nullptr, RTLD_NOW);
  const char* missing = nullptr;
#define HSTUJIT_FIND(result, name, arguments)                                                       \
  opened.functions.name = reinterpret_cast<decltype(opened.functions.name)>(dlsym(process, #name)); \
  if (!opened.functions.name) missing = #name;
  HSTUJIT_PYTHON_FUNCTIONS(HSTUJIT_FIND)
#undef HSTUJIT_FIND
  if (missing) throw std::runtime_error(std::string("Python has no function ") + missing);
#define HSTUJIT_TAKE(name)                                             \
  opened.name = opened.functions.PyDict_GetItemString(objects, #name); \
  if (!opened.name) throw std::runtime_error(std::string(#name) + " is missing");
  HSTUJIT_PYTHON_OBJECTS(HSTUJIT_TAKE)
#undef HSTUJIT_TAKE
  const auto* const api =
      static_cast<ExchangeApi*>(opened.functions.PyCapsule_GetPointer(opened.exchange_api, "dlpack_exchange_api"));
  if (!api || api->major != 1 || !api->dltensor_from_py_object) {
    opened.functions.PyErr_Clear();
    throw std::runtime_error("PyTorch has no DLPackExchangeAPI of version 1");
  }
  opened.functions.Py_IncRef(objects);  // for ever, and so all that it holds
  opened.names = std::move(python().names);
  python() = std::move(opened);
  add_callables(python().profilers);
  python().profiler_count = python().callables.size();
  add_callables(python().guards);
  set_view(api->dltensor_from_py_object);
}

}  // namespace hstujit::torch
