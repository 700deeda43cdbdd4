#include "python/native/direct.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <string>

#include "python/native/launch.h"

namespace hstujit::torch {
namespace {

constexpr std::ptrdiff_t kLongestText = 1 << 20;

PyObject* object(void* borrowed) { return static_cast<PyObject*>(borrowed); }

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
  const auto guards = std::span(used.guards).first(caller == Caller::kKernel ? used.profilers : used.guards.size());
  for (PyObject* guard : guards)
    if (is_true(Reference(used.functions.PyObject_CallNoArgs(guard)))) return true;
  if (caller == Caller::kKernel) return false;
  const Reference level(used.functions.PyObject_GetAttr(object(used.objects.level_of), object(used.objects.level)));
  return !level.get() || used.functions.PyLong_AsLongLong(level.get()) >= 0;
}

// Whether torch.library has replaced a kernel of the operator.
bool is_overridden(const Names& names) {
  const Python& used = python();
  return std::ranges::any_of(names.overrides, [&](PyObject* kernel) {
    return used.functions.PySet_Contains(object(used.objects.kernels), kernel) != 0;
  });
}

bool is_grad_enabled() {
  const Python& used = python();
  return is_true(Reference(used.functions.PyObject_CallNoArgs(object(used.objects.is_grad_enabled))));
}

std::optional<std::int32_t> dtype_of(DLDataType type) {
  const Functions& torch = functions();
  if (type.lanes != 1) return std::nullopt;
  if (type.code == kDLBfloat && type.bits == 16) return torch.aoti_torch_dtype_bfloat16();
  if (type.code == kDLFloat && type.bits == 16) return torch.aoti_torch_dtype_float16();
  if (type.code == kDLFloat && type.bits == 32) return torch.aoti_torch_dtype_float32();
  if (type.code == kDLInt && type.bits == 32) return torch.aoti_torch_dtype_int32();
  if (type.code == kDLInt && type.bits == 64) return torch.aoti_torch_dtype_int64();
  return std::nullopt;
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
  bool read_tensor(PyObject* value, hstujit_torch_tensor& to);

  const Names& names_;
  const bool is_grad_enabled_;
  bool are_recorded_ = false;
};

bool PythonArguments::read(PyObject* const* values, std::size_t positional, PyObject* keywords) {
  const PythonFunctions& called = python().functions;
  const std::size_t named = keywords ? static_cast<std::size_t>(called.PyTuple_Size(keywords)) : 0;
  if (positional > names_.positional) return false;
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
    if (names_.defaults[slot].kind == HSTUJIT_TORCH_REQUIRED) return false;
    value_of(op_.slots[slot]) = names_.defaults[slot];
  }
  if (!are_recorded_) make_call();
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
  const hstujit_torch_python& known = python().objects;
  const hstujit_torch_slot& slot = op_.slots[at];
  hstujit_torch_value& to = value_of(slot);
  to.kind = slot.kind;
  if (slot.optional && value == known.none) {
    to.kind = HSTUJIT_TORCH_NONE;
    return true;
  }
  PyObject* const type = type_of(value);
  switch (slot.kind) {
    case HSTUJIT_TORCH_TENSOR:
      if (type != known.tensor && type != known.parameter) return false;
      to.tensor = &tensors_[slot.index];
      return read_tensor(value, tensors_[slot.index]);
    case HSTUJIT_TORCH_REAL:
      if (type != known.float_ && type != known.int_) return false;
      to.real = called.PyFloat_AsDouble(value);
      return to.real != -1 || !called.PyErr_Occurred();
    case HSTUJIT_TORCH_INTEGER:
      if (type != known.int_) return false;
      to.integer = called.PyLong_AsLongLong(value);
      return to.integer != -1 || !called.PyErr_Occurred();
    case HSTUJIT_TORCH_BOOLEAN:
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

bool PythonArguments::read_tensor(PyObject* value, hstujit_torch_tensor& to) {
  const Python& used = python();
  const auto requires_grad = [&] {
    return is_true(Reference(used.functions.PyObject_GetAttr(value, object(used.objects.requires_grad))));
  };
  are_recorded_ = are_recorded_ || (is_grad_enabled_ && requires_grad());
  if (are_recorded_) return true;
  DLTensor view{};
  if (functions().dltensor_from_py_object(value, &view)) return false;
  const auto dtype = dtype_of(view.dtype);
  const bool is_cpu = view.device.device_type == kDLCPU;
  if (!dtype || (!is_cpu && view.device.device_type != kDLCUDA) || (view.ndim > 0 && !view.strides)) return false;
  // A tensor that is not in memory as it is read: without elements, of zeros that are nowhere, or to be negated.
  if (!view.data) return false;
  const Reference is_neg(used.functions.PyObject_CallFunctionObjArgs(object(used.objects.is_neg), value, nullptr));
  if (is_true(is_neg)) return false;
  const Functions& torch = functions();
  to.data = static_cast<char*>(view.data) + view.byte_offset;
  to.sizes = view.shape;
  to.strides = view.strides;
  to.rank = view.ndim;
  to.dtype = *dtype;
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
  const Reference tensors(
      called.PyObject_CallFunctionObjArgs(object(used.objects.tensors_from_handles), capsules.get(), nullptr));
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
  launch(registered, arguments, *plan, outputs);
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
  const std::span outputs(made.data(), static_cast<std::size_t>(called.op.outputs));
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
  return called.PyObject_CallFunctionObjArgs(
      otherwise, object(outcome.is_recorded ? used.objects.true_ : used.objects.false_),
      failure.get() ? failure.get() : object(used.objects.none), arguments.get(), keywords.get(), nullptr);
}

}  // namespace

PyObject* call_directly(std::size_t op, Caller caller, const Names& names, const Passed& passed) {
  const Python& used = python();
  const Outcome outcome = compute(registered(op), caller, names, passed);
  if (outcome.result) return outcome.result;
  used.functions.PyErr_Clear();
  if (caller == Caller::kAnyone) return call_otherwise(names.otherwise, outcome, passed);
  if (!outcome.failure.empty()) {
    used.functions.PyErr_SetString(object(used.objects.runtime_error), outcome.failure.c_str());
    return nullptr;
  }
  used.functions.Py_IncRef(object(used.objects.not_implemented));
  return object(used.objects.not_implemented);
}

}  // namespace hstujit::torch
