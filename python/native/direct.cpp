#include "python/native/direct.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "python/native/launch.h"
#include "python/native/python_objects.h"

namespace hstujit::torch {
namespace {

constexpr std::ptrdiff_t kLongestText = 1 << 20;

enum class Caller {
  kAnyone,
  kKernel,  // of autograd's: it knows that nothing but the operator's kernels is left to be called
};

// The arguments of a function of Python with METH_FASTCALL and METH_KEYWORDS.
struct Passed {
  PyObject* const* values;  // without a keyword, then with one
  std::size_t positional;
  PyObject* keywords;  // a tuple, or nullptr
};

// For as long as it lives, other threads run Python.
class WithoutGil {
 public:
  WithoutGil() : thread_(python().functions.PyEval_SaveThread()) {}
  ~WithoutGil() { python().functions.PyEval_RestoreThread(thread_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* thread_;
};

PyObject* type_of(PyObject* value) {
  return Reference(python().functions.PyObject_Type(value)).get();  // the value keeps it
}

// Whether a new reference is something true; nothing at all counts as true.
bool is_true(const Reference& value) { return !value.get() || python().functions.PyObject_IsTrue(value.get()) != 0; }

// Whether anything but an operator's kernels has a say in its calls.
bool is_anything_in_force(Caller caller) {
  const Python& used = python();
  const auto asked =
      std::span(used.callables).first(caller == Caller::kKernel ? used.profiler_count : used.callables.size());
  for (PyObject* guard : asked)
    if (is_true(Reference(used.functions.PyObject_CallNoArgs(guard)))) return true;
  if (caller == Caller::kKernel) return false;
  const Reference level(used.functions.PyObject_GetAttr(used.level_of, used.level));
  return !level.get() || used.functions.PyLong_AsLongLong(level.get()) >= 0;
}

// Whether torch.library has replaced a kernel of the operator.
bool is_overridden(const Names& names) {
  const Python& used = python();
  return std::ranges::any_of(
      names.overrides, [&](PyObject* kernel) { return used.functions.PySet_Contains(used.kernels, kernel) != 0; });
}

bool is_grad_enabled() {
  const Python& used = python();
  return is_true(Reference(used.functions.PyObject_CallNoArgs(used.is_grad_enabled)));
}

// Whether kernels read tensors of this type. The dispatcher refuses others.
bool is_read(DLDataType type) {
  if (type.lanes != 1) return false;
  if (type.code == kDLInt) return type.bits == 32 || type.bits == 64;
  if (type.code == kDLFloat) return type.bits == 16 || type.bits == 32;
  return type.code == kDLBfloat && type.bits == 16;
}

// What Python passes to an operator. Each function is false where the dispatcher has to look at a value.
class PythonArguments : public Arguments {
 public:
  PythonArguments(const Operator& op, const Names& names, bool is_grad_enabled)
      : Arguments(op), names_(names), is_grad_enabled_(is_grad_enabled) {}

  bool read(PyObject* const* values, std::size_t positional, PyObject* keywords);
  // Once they are read. What tensors hold is not known then.
  bool are_recorded() const { return are_recorded_; }

 private:
  std::optional<std::size_t> slot_of(PyObject* keyword) const;
  bool read(std::size_t slot, PyObject* value);
  bool read_tensor(PyObject* value, Tensor& to);

  const Names& names_;
  const bool is_grad_enabled_;
  bool are_recorded_ = false;
};

bool PythonArguments::read(PyObject* const* values, std::size_t positional, PyObject* keywords) {
  const PythonFunctions& called = python().functions;
  const std::size_t named = keywords ? static_cast<std::size_t>(called.PyTuple_Size(keywords)) : 0;
  if (positional > static_cast<std::size_t>(op_.positional)) return false;
  std::array<bool, kMaxArguments> given;
  std::fill_n(given.begin(), op_.slots.size(), false);
  for (std::size_t slot = 0; slot < positional; ++slot) {
    if (!read(slot, values[slot])) return false;
    given[slot] = true;
  }
  for (std::size_t i = 0; i < named; ++i) {
    const auto slot = slot_of(called.PyTuple_GetItem(keywords, static_cast<std::ptrdiff_t>(i)));
    if (!slot || given[*slot] || !read(*slot, values[positional + i])) return false;
    given[*slot] = true;
  }
  for (std::size_t slot = positional; slot < op_.slots.size(); ++slot) {
    if (given[slot]) continue;
    if (!op_.slots[slot].fallback) return false;
    value_of(op_.slots[slot]) = *op_.slots[slot].fallback;
  }
  if (!are_recorded_) finish();
  return true;
}

std::optional<std::size_t> PythonArguments::slot_of(PyObject* keyword) const {
  const auto& names = names_.names;
  const auto same = std::ranges::find(names, keyword);
  if (same != names.end()) return same - names.begin();
  const auto equal = std::ranges::find_if(
      names, [&](PyObject* name) { return python().functions.PyUnicode_Compare(name, keyword) == 0; });
  if (equal != names.end()) return equal - names.begin();
  return std::nullopt;
}

bool PythonArguments::read(std::size_t at, PyObject* value) {
  const PythonFunctions& called = python().functions;
  const Python& known = python();
  const Slot& slot = op_.slots[at];
  Value& to = value_of(slot);
  to.kind = slot.kind;
  if (slot.optional && value == known.none) {
    to.kind = Kind::kNone;
    return true;
  }
  PyObject* const type = type_of(value);
  switch (slot.kind) {
    case Kind::kTensor:
      if (type != known.tensor && type != known.parameter) return false;
      to.tensor = &tensors_[slot.index];
      return read_tensor(value, tensors_[slot.index]);
    case Kind::kReal:
      if (type != known.float_ && type != known.int_) return false;
      to.real = called.PyFloat_AsDouble(value);
      return to.real != -1 || !called.PyErr_Occurred();
    case Kind::kInteger:
      if (type != known.int_) return false;
      to.integer = called.PyLong_AsLongLong(value);
      return to.integer != -1 || !called.PyErr_Occurred();
    case Kind::kFlag:
      to.integer = value == known.true_;
      return value == known.true_ || value == known.false_;
    default: {
      if (type != known.str) return false;
      std::ptrdiff_t size = 0;
      to.text = called.PyUnicode_AsUTF8AndSize(value, &size);
      to.size = static_cast<std::int32_t>(size);
      return to.text && size <= kLongestText;
    }
  }
}

bool PythonArguments::read_tensor(PyObject* value, Tensor& to) {
  const Python& used = python();
  const auto requires_grad = [&] {
    return is_true(Reference(used.functions.PyObject_GetAttr(value, used.requires_grad)));
  };
  are_recorded_ = are_recorded_ || (is_grad_enabled_ && requires_grad());
  if (are_recorded_) return true;
  DLTensor view{};
  if (functions().dltensor_from_py_object(value, &view)) return false;
  const bool is_cpu = view.device.device_type == kDLCPU;
  if (!is_read(view.dtype) || (!is_cpu && view.device.device_type != kDLCUDA) || (view.ndim > 0 && !view.strides))
    return false;
  // A tensor that is not in memory as it is read: without elements, of zeros that are nowhere, or to be negated.
  if (!view.data) return false;
  const Reference is_neg(used.functions.PyObject_CallFunctionObjArgs(used.is_neg, value, nullptr));
  if (is_true(is_neg)) return false;
  const Functions& torch = functions();
  to.data = static_cast<char*>(view.data) + view.byte_offset;
  to.sizes = view.shape;
  to.strides = view.strides;
  to.rank = view.ndim;
  to.dtype = torch_type(view.dtype);
  to.device_type = is_cpu ? torch.aoti_torch_device_type_cpu() : torch.aoti_torch_device_type_cuda();
  to.device = is_cpu ? -1 : view.device.device_id;
  return true;
}

// A tensor, or a tuple of several.
PyObject* result_of(std::span<OwnedTensor> outputs) {
  const Python& used = python();
  const PythonFunctions& called = used.functions;
  const Reference capsules(called.PyList_New(static_cast<std::ptrdiff_t>(outputs.size())));
  if (!capsules.get()) return nullptr;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    PyObject* const capsule = called.PyCapsule_New(outputs[i].get(), nullptr, nullptr);
    if (!capsule || called.PyList_SetItem(capsules.get(), static_cast<std::ptrdiff_t>(i), capsule)) return nullptr;
  }
  for (OwnedTensor& output : outputs) static_cast<void>(output.release());
  const Reference tensors(called.PyObject_CallFunctionObjArgs(used.tensors_from_handles, capsules.get(), nullptr));
  if (!tensors.get()) return nullptr;
  if (outputs.size() > 1) return called.PyList_AsTuple(tensors.get());
  PyObject* const tensor = called.PyList_GetItem(tensors.get(), 0);
  if (tensor) called.Py_IncRef(tensor);
  return tensor;
}

// False where the dispatcher has to be asked.
bool run(Registered& registered, const Arguments& arguments, std::span<OwnedTensor> outputs) {
  const WithoutGil released;
  const std::shared_ptr<Plan> plan = plan_of(registered, arguments);
  if (plan->needs_handles) return false;
  launch(arguments, *plan, outputs);
  return true;
}

// What comes of a call without the dispatcher.
struct Outcome {
  PyObject* result = nullptr;  // a new reference; with none, the dispatcher decides unless one of these is set
  bool is_recorded = false;    // autograd is to record the call
  std::string failure;         // why the call is refused
};

Outcome compute(Registered& called, Caller caller, const Names& names, const Passed& passed) {
  if (is_anything_in_force(caller) || is_overridden(names)) return {};
  PythonArguments arguments(called.op, names, caller == Caller::kAnyone && is_grad_enabled());
  if (!arguments.read(passed.values, passed.positional, passed.keywords)) return {};
  if (arguments.are_recorded()) return {nullptr, true, {}};
  std::array<OwnedTensor, kMaxOutputs> made;
  const std::span outputs(made.data(), called.op.outputs.size());
  try {
    if (!run(called, arguments, outputs)) return {};
  } catch (const std::exception& error) {
    return {nullptr, false, error.what()};
  }
  return {result_of(outputs), false, {}};
}

// A call of `otherwise` with whether autograd records the call, why it failed or None, the tuple of its arguments, and
// the dict of its keywords.
PyObject* call_otherwise(PyObject* otherwise, const Outcome& outcome, const Passed& passed) {
  const Python& used = python();
  const PythonFunctions& called = used.functions;
  const Reference arguments(called.PyTuple_New(static_cast<std::ptrdiff_t>(passed.positional)));
  const Reference keywords(called.PyDict_New());
  const std::string& why = outcome.failure;
  const auto length = static_cast<std::ptrdiff_t>(why.size());
  const Reference failure(why.empty() ? nullptr : called.PyUnicode_DecodeUTF8(why.data(), length, "replace"));
  if (!arguments.get() || !keywords.get() || (!why.empty() && !failure.get())) return nullptr;
  for (std::size_t i = 0; i < passed.positional; ++i) {
    called.Py_IncRef(passed.values[i]);
    if (called.PyTuple_SetItem(arguments.get(), static_cast<std::ptrdiff_t>(i), passed.values[i])) return nullptr;
  }
  const std::ptrdiff_t named = passed.keywords ? called.PyTuple_Size(passed.keywords) : 0;
  for (std::ptrdiff_t i = 0; i < named; ++i) {
    PyObject* const name = called.PyTuple_GetItem(passed.keywords, i);
    if (called.PyDict_SetItem(keywords.get(), name, passed.values[passed.positional + static_cast<std::size_t>(i)]))
      return nullptr;
  }
  return called.PyObject_CallFunctionObjArgs(otherwise, outcome.is_recorded ? used.true_ : used.false_,
                                             failure.get() ? failure.get() : used.none, arguments.get(), keywords.get(),
                                             nullptr);
}

// The operator's outputs, where nothing but its kernels has a say in the call and every argument is of the plainest
// type. Else what `otherwise` returns of anyone's call, and NotImplemented of a kernel's. nullptr with an exception of
// Python.
PyObject* call_directly(std::size_t index, Caller caller, const Passed& passed) {
  const Python& used = python();
  const Names& names = *used.names[index];
  const Outcome outcome = compute(registered(index), caller, names, passed);
  if (outcome.result) return outcome.result;
  used.functions.PyErr_Clear();
  if (caller == Caller::kAnyone) return call_otherwise(names.otherwise, outcome, passed);
  if (!outcome.failure.empty()) {
    used.functions.PyErr_SetString(used.runtime_error, outcome.failure.c_str());
    return nullptr;
  }
  used.functions.Py_IncRef(used.not_implemented);
  return used.not_implemented;
}

// Bound to the number of an operator; to -1 less it for a kernel of autograd's.
PyObject* call(PyObject* bound, PyObject* const* values, std::ptrdiff_t positional, PyObject* keywords) {
  const long long number = python().functions.PyLong_AsLongLong(bound);
  const auto index = static_cast<std::size_t>(number < 0 ? -1 - number : number);
  const Caller caller = number < 0 ? Caller::kKernel : Caller::kAnyone;
  return call_directly(index, caller, {values, static_cast<std::size_t>(positional), keywords});
}

// Interned, so that names of calls are the same objects, and for ever.
PyObject* interned(const std::string& text) { return python().functions.PyUnicode_InternFromString(text.c_str()); }

Names& names_of(std::size_t index) {
  Python& opened = python();
  if (index >= opened.names.size()) opened.names.resize(index + 1);
  std::unique_ptr<Names>& names = opened.names[index];
  if (names) return *names;
  names = std::make_unique<Names>();
  const Operator& op = registered(index).op;
  for (const Slot& slot : op.slots) names->names.push_back(interned(slot.name));
  for (const char* key : {"CPU", "CUDA", "AutogradCPU", "AutogradCUDA"})
    names->overrides.push_back(interned("hstujit/" + op.name + "/" + key));
  names->method = {op.name.c_str(), call, kFastcallWithKeywords, nullptr};
  return *names;
}

}  // namespace

PyObject* make_function(std::size_t index, PyObject* otherwise) {
  const PythonFunctions& called = python().functions;
  Names& names = names_of(index);
  if (otherwise) {
    called.Py_IncRef(otherwise);
    names.otherwise = otherwise;
  }
  const auto number = static_cast<long long>(index);
  const Reference bound(called.PyLong_FromLongLong(otherwise ? number : -1 - number));
  return called.PyCFunction_NewEx(reinterpret_cast<PyMethodDef*>(&names.method), bound.get(), nullptr);
}

}  // namespace hstujit::torch
