// What Python calls (python/hstujit/torch/_native.py), and the kernels that PyTorch's dispatcher calls.
//
// A kernel of the stable interface is a function without data of its own, so there is one function for each operator,
// of which there are kMaxOperators.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "python/native/direct.h"
#include "python/native/launch.h"

namespace hstujit::torch {
namespace {

constexpr std::size_t kMaxOperators = 128;
// What this is written for: PyTorch 2.10, whose conventions later versions keep.
constexpr std::uint64_t kTorchVersion = std::uint64_t{2} << 56 | std::uint64_t{10} << 48;

// Never destroyed: PyTorch may call until the process has ended.
struct State {
  Functions functions;
  hstujit_torch_callbacks callbacks;
  TorchLibraryHandle cpu = nullptr, cuda = nullptr;
  std::array<std::unique_ptr<Registered>, kMaxOperators> operators;
  std::array<Names, kMaxOperators> names;
  Python python;
  std::size_t count = 0;
};

State& state() {
  static State* const kept = new State;
  return *kept;
}

// What went wrong on this thread.
std::string& error_text() {
  thread_local std::string text;
  return text;
}

int refuse(std::string text) {
  error_text() = std::move(text);
  return 1;
}

template <std::size_t index>
void kernel(StableIValue* stack, std::uint64_t, std::uint64_t) {
  launch(*state().operators[index], stack);
}

using Kernel = void (*)(StableIValue*, std::uint64_t, std::uint64_t);

template <std::size_t... indices>
constexpr std::array<Kernel, sizeof...(indices)> kernels_of(std::index_sequence<indices...>) {
  return {kernel<indices>...};
}

constexpr auto kKernels = kernels_of(std::make_index_sequence<kMaxOperators>());

// False where a library has no function of this name.
template <typename Function>
bool find(void* library, const char* name, Function& to) {
  void* found = library ? dlsym(library, name) : nullptr;
  to = reinterpret_cast<Function>(found);
  return found != nullptr;
}

// Why dlopen gave nothing. The loader has no words for a library that is not loaded, which RTLD_NOLOAD leaves so.
std::string loader_reason(const char* file) {
  const char* const reason = dlerror();
  return reason ? reason : std::string(file) + " is not loaded";
}

}  // namespace

const Functions& functions() { return state().functions; }
Registered& registered(std::size_t index) { return *state().operators[index]; }
Python& python() { return state().python; }
const hstujit_torch_callbacks& callbacks() { return state().callbacks; }

std::int32_t determinism() {
  const Functions& torch = functions();
  if (!torch.global_context) return callbacks().determinism();
  const void* const context = torch.global_context();
  if (!torch.deterministic_algorithms(context)) return HSTUJIT_TORCH_ANY;
  return torch.deterministic_algorithms_warn_only(context) ? HSTUJIT_TORCH_PREFERRED : HSTUJIT_TORCH_DETERMINISTIC;
}

void check_callback(std::int32_t failed) {
  if (failed) throw std::runtime_error(error_text());
}

void check_status(std::int32_t op, hstujit_status status) {
  if (status == HSTUJIT_OK) return;
  check_callback(callbacks().failed(op, status));
  throw std::runtime_error(hstujit_last_error());
}

}  // namespace hstujit::torch

using namespace hstujit::torch;

extern "C" {

// The text of the last failure on this thread.
HSTUJIT_API const char* hstujit_torch_error() { return error_text().c_str(); }
HSTUJIT_API void hstujit_torch_set_error(const char* text) { error_text() = text; }

// Finds PyTorch's functions in its libraries, which the process has loaded; `cuda` is NULL where there is none. Returns
// 1 where something is missing, and hstujit_torch_error says what.
HSTUJIT_API int hstujit_torch_open(const char* cpu, const char* cuda, const hstujit_torch_callbacks* callbacks) {
  State& opened = state();
  void* const library = dlopen(cpu, RTLD_NOLOAD | RTLD_NOW);
  if (!library) return refuse(loader_reason(cpu));
  void* const cuda_library = cuda ? dlopen(cuda, RTLD_NOLOAD | RTLD_NOW) : nullptr;
  const char* missing = nullptr;
#define HSTUJIT_FIND(name, ...) \
  if (!find(library, #name, opened.functions.name)) missing = #name;
  HSTUJIT_TORCH_CONSTANTS(HSTUJIT_FIND)
  HSTUJIT_TORCH_FUNCTIONS(HSTUJIT_FIND)
#undef HSTUJIT_FIND
  if (missing) return refuse(std::string(cpu) + " has no function " + missing);
#define HSTUJIT_FIND(name, ...) \
  if (!find(library, #name, opened.functions.name)) find(cuda_library, #name, opened.functions.name);
  HSTUJIT_TORCH_OPTIONAL_FUNCTIONS(HSTUJIT_FIND)
#undef HSTUJIT_FIND
  const bool tells =
      find(library, "_ZN2at13globalContextEv", opened.functions.global_context) &&
      find(library, "_ZNK2at7Context23deterministicAlgorithmsEv", opened.functions.deterministic_algorithms) &&
      find(library, "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv",
           opened.functions.deterministic_algorithms_warn_only);
  if (!tells) opened.functions.global_context = nullptr;
  opened.callbacks = *callbacks;
  for (auto [key, made] : {std::pair("CPU", &opened.cpu), std::pair("CUDA", &opened.cuda)})
    if (opened.functions.aoti_torch_library_init_impl("hstujit", key, "libhstujit_torch.so", 0, made))
      return refuse(std::string("PyTorch takes no kernels for ") + key);
  return 0;
}

// The number of an operator from now on, or -1.
HSTUJIT_API int hstujit_torch_add_operator(const hstujit_torch_operator* described) {
  State& opened = state();
  const auto& [slot_count, slots, inputs, parameters, rows, outputs, first, axis_count, axes, form_count, forms] =
      *described;
  if (opened.count == kMaxOperators || slot_count > kMaxArguments || outputs > kMaxOutputs) {
    refuse("there are more operators, or arguments of one, than this library has room for");
    return -1;
  }
  auto made = std::make_unique<Registered>();
  made->index = static_cast<std::int32_t>(opened.count);
  made->op = {{slots, slots + slot_count},
              {axes, axes + axis_count},
              {forms, forms + form_count},
              inputs,
              parameters,
              rows,
              outputs,
              first};
  opened.operators[opened.count] = std::move(made);
  return static_cast<int>(opened.count++);
}

// Makes the kernels of operator `op` those of an operator that PyTorch has.
HSTUJIT_API int hstujit_torch_implement(int op, const char* name) {
  State& opened = state();
  for (const TorchLibraryHandle library : {opened.cpu, opened.cuda})
    if (opened.functions.torch_library_impl(library, name, kKernels[static_cast<std::size_t>(op)], kTorchVersion))
      return refuse(std::string("PyTorch takes no kernel of ") + name);
  return 0;
}

// Finds Python's functions in the process, so that operators can be called without the dispatcher. Returns 1 where
// there is one missing, and hstujit_torch_error says which.
HSTUJIT_API int hstujit_torch_open_python(const hstujit_torch_python* objects) {
  Python& opened = python();
  void* const process = dlopen(nullptr, RTLD_NOW);
  const char* missing = nullptr;
#define HSTUJIT_FIND(result, name, arguments) \
  if (!find(process, #name, opened.functions.name)) missing = #name;
  HSTUJIT_PYTHON_FUNCTIONS(HSTUJIT_FIND)
#undef HSTUJIT_FIND
  if (missing) return refuse(std::string("Python has no function ") + missing);
  opened.objects = *objects;
  for (std::int32_t i = 0; i < objects->guard_count; ++i)
    opened.guards.push_back(static_cast<PyObject*>(objects->guards[i]));
  opened.profilers = static_cast<std::size_t>(objects->profiler_count);
  state().functions.dltensor_from_py_object = objects->dltensor_from_py_object;
  return 0;
}

// How Python calls operator `op`. Texts among the defaults are there as long as the process.
HSTUJIT_API void hstujit_torch_set_names(int op, const hstujit_torch_names* given) {
  const std::size_t count = registered(static_cast<std::size_t>(op)).op.slots.size();
  Names& names = state().names[static_cast<std::size_t>(op)];
  for (std::size_t i = 0; i < count; ++i) names.names.push_back(static_cast<PyObject*>(given->names[i]));
  names.defaults.assign(given->defaults, given->defaults + count);
  names.positional = static_cast<std::size_t>(given->positional);
  for (std::int32_t i = 0; i < given->override_count; ++i)
    names.overrides.push_back(static_cast<PyObject*>(given->overrides[i]));
  names.otherwise = static_cast<PyObject*>(given->otherwise);
}

// What Python makes a function of, with METH_FASTCALL and METH_KEYWORDS, bound to the number of an operator; to -1 less
// it for a kernel of autograd's.
HSTUJIT_API PyObject* hstujit_torch_call(PyObject* op, PyObject* const* values, std::ptrdiff_t positional,
                                         PyObject* keywords) {
  const long long number = python().functions.PyLong_AsLongLong(op);
  const auto index = static_cast<std::size_t>(number < 0 ? -1 - number : number);
  const Caller caller = number < 0 ? Caller::kKernel : Caller::kAnyone;
  return call_directly(index, caller, state().names[index], {values, static_cast<std::size_t>(positional), keywords});
}

// Forgets every plan: they are of another context from now on.
HSTUJIT_API void hstujit_torch_forget() {
  for (const auto& registered : state().operators)
    if (registered) registered->plans.forget();
}

// How many plans of each operator are kept, 1 or more.
HSTUJIT_API void hstujit_torch_keep_plans(std::int32_t most) { PlanTable::keep_plans(static_cast<std::size_t>(most)); }

// In a callback, for the plan that it was given.
HSTUJIT_API int hstujit_torch_set_plan(void* to, const hstujit_torch_plan* from, std::int32_t outputs) {
  const std::span arguments(from->arguments, static_cast<std::size_t>(from->argument_count));
  const auto is_too_large = [](const hstujit_torch_argument& argument) { return argument.rank > kMaxRank; };
  if (arguments.size() > kMaxArguments || std::ranges::any_of(arguments, is_too_large))
    return refuse("a launch has more arguments, or an argument more axes, than this library has room for");
  Plan& plan = *static_cast<Plan*>(to);
  plan.owner = from->owner;
  plan.arguments.assign(arguments.begin(), arguments.end());
  plan.schema_outputs.assign(from->schema_outputs, from->schema_outputs + outputs);
  plan.program.assign(from->program, from->program + from->program_length);
  plan.max_rows = from->max_rows;
  plan.needs_handles = from->needs_handles != 0;
  return 0;
}

// Adds the op of an alignment at its place, largest first, unless another thread has done so. `alignments` are those of
// the tensors of a launch.
HSTUJIT_API void hstujit_torch_add_op(void* to, int place, hstujit_op* op, const std::int32_t* alignments, int count,
                                      int is_last) {
  if (place >= Plan::kMaxAlignments) return;
  auto made = std::make_unique<AlignedOp>(op, std::span(alignments, static_cast<std::size_t>(count)), is_last != 0);
  AlignedOp* none = nullptr;
  if (static_cast<Plan*>(to)->ops[static_cast<std::size_t>(place)].compare_exchange_strong(none, made.get()))
    static_cast<void>(made.release());
}

// For tests: puts another function in the place of one of PyTorch's, and returns that one; NULL where this library
// calls none of that name.
HSTUJIT_API void* hstujit_torch_replace(const char* name, void* function) {
  Functions& used = state().functions;
#define HSTUJIT_REPLACE(member, ...)     \
  if (std::string_view(name) == #member) \
    return reinterpret_cast<void*>(std::exchange(used.member, reinterpret_cast<decltype(used.member)>(function)));
  HSTUJIT_REPLACE(dltensor_from_py_object)
  HSTUJIT_REPLACE(global_context)
  HSTUJIT_TORCH_CONSTANTS(HSTUJIT_REPLACE)
  HSTUJIT_TORCH_FUNCTIONS(HSTUJIT_REPLACE)
  HSTUJIT_TORCH_OPTIONAL_FUNCTIONS(HSTUJIT_REPLACE)
#undef HSTUJIT_REPLACE
  return nullptr;
}

}  // extern "C"
