// Registers the operators with PyTorch when this library is loaded, with or without Python, and has what Python calls
// besides (python/hstujit/torch/_native.py).
//
// A kernel of the stable interface is a function without data of its own, so there is one function for each operator,
// of which there are kMaxOperators.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "python/native/context.h"
#include "python/native/launch.h"

namespace hstujit::torch {
namespace {

constexpr std::size_t kMaxOperators = 128;
constexpr char kNamespace[] = "hstujit";
constexpr char kFile[] = "libhstujit_torch.so";
constexpr char kCpuLibrary[] = "libtorch_cpu.so", kCudaLibrary[] = "libtorch_cuda.so";
// Asks for the conventions of PyTorch 2.10, which later versions keep.
constexpr std::uint64_t kTorchVersion = std::uint64_t{2} << 56 | std::uint64_t{10} << 48;
constexpr std::string_view kNotDeterministic = "deterministic ones are asked for";  // compiler/plan/search_space.cpp

// Not a hstujit_status: a callback of Python has failed, and keeps its exception.
constexpr std::int32_t kFailedInPython = -1;

// The last failure of a thread.
struct Failure {
  std::string sentence;
  std::int32_t status = HSTUJIT_OK;
};

Failure& failure() {
  thread_local Failure last;
  return last;
}

// Never destroyed: PyTorch may call until the process has ended.
struct State {
  Functions functions;
  hstujit_torch_callbacks callbacks{};
  hstujit_context* context = nullptr;  // of calls without Python
  std::once_flag context_made;
  std::array<std::unique_ptr<Registered>, kMaxOperators> operators;
  std::string why_not = "it is not loaded";  // why no operator is registered; empty: they are
};

State& state() {
  static State* const kept = new State;
  return *kept;
}

template <std::size_t index>
void kernel(StableIValue* stack, std::uint64_t, std::uint64_t) {
  launch(*state().operators[index], stack);
}

using Kernel = void (*)(StableIValue*, std::uint64_t, std::uint64_t);

constexpr auto kKernels = []<std::size_t... indices>(std::index_sequence<indices...>) {
  return std::array<Kernel, sizeof...(indices)>{kernel<indices>...};
}(std::make_index_sequence<kMaxOperators>());

// False where a library has no function of this name.
template <typename Function>
bool find(void* library, const char* name, Function& to) {
  void* found = library ? dlsym(library, name) : nullptr;
  to = reinterpret_cast<Function>(found);
  return found != nullptr;
}

// Finds PyTorch's functions in its libraries, which the process has loaded.
void find_functions(Functions& found) {
  void* const library = dlopen(kCpuLibrary, RTLD_NOLOAD | RTLD_NOW);
  if (!library) throw std::runtime_error(std::string("PyTorch's ") + kCpuLibrary + " is not loaded");
  void* const cuda_library = dlopen(kCudaLibrary, RTLD_NOLOAD | RTLD_NOW);
  const char* missing = nullptr;
#define HSTUJIT_FIND(name, ...) \
  if (!find(library, #name, found.name)) missing = #name;
  HSTUJIT_TORCH_CONSTANTS(HSTUJIT_FIND)
  HSTUJIT_TORCH_FUNCTIONS(HSTUJIT_FIND)
  HSTUJIT_FIND(aoti_torch_warn)
#undef HSTUJIT_FIND
#define HSTUJIT_FIND(name, ...) \
  if (!find(library, #name, found.name)) find(cuda_library, #name, found.name);
  HSTUJIT_TORCH_OPTIONAL_FUNCTIONS(HSTUJIT_FIND)
#undef HSTUJIT_FIND
  if (!find(library, "_ZN2at13globalContextEv", found.global_context) ||
      !find(library, "_ZNK2at7Context23deterministicAlgorithmsEv", found.deterministic_algorithms) ||
      !find(library, "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv", found.deterministic_algorithms_warn_only))
    missing = "at::globalContext";
  if (missing)
    throw std::runtime_error(std::string(kCpuLibrary) + " has no function " + missing +
                             "; this library needs PyTorch 2.10 or newer");
}

void register_operators(State& opened) {
  find_functions(opened.functions);
  TorchLibraryHandle definitions = nullptr, cpu = nullptr, cuda = nullptr;  // which stay
  HSTUJIT_CALL_TORCH(aoti_torch_library_init_def, kNamespace, kFile, 0, &definitions);
  HSTUJIT_CALL_TORCH(aoti_torch_library_init_impl, kNamespace, "CPU", kFile, 0, &cpu);
  HSTUJIT_CALL_TORCH(aoti_torch_library_init_impl, kNamespace, "CUDA", kFile, 0, &cuda);
  std::vector<Operator> all = all_operators();
  if (all.size() > kMaxOperators) throw std::logic_error("the library has more operators than this build supports");
  for (std::size_t index = 0; index < all.size(); ++index) {
    opened.operators[index] = std::unique_ptr<Registered>(new Registered{std::move(all[index]), {}});
    const Operator& kept = opened.operators[index]->op;
    HSTUJIT_CALL_TORCH(aoti_torch_library_def, definitions, kept.schema.c_str());
    for (const TorchLibraryHandle library : {cpu, cuda})
      HSTUJIT_CALL_TORCH(torch_library_impl, library, kept.name.c_str(), kKernels[index], kTorchVersion);
  }
}

// Runs when the library is loaded, by dlopen, torch.ops.load_library, or as one that a program is linked to.
[[gnu::constructor]] void load() {
  State& opened = state();
  try {
    register_operators(opened);
    opened.why_not.clear();
  } catch (const std::exception& error) {
    opened.why_not = error.what();
  }
}

}  // namespace

const Functions& functions() { return state().functions; }
const hstujit_torch_callbacks& callbacks() { return state().callbacks; }

void throw_failure(std::int32_t status, std::string sentence) {
  failure() = {sentence, status};
  throw std::runtime_error(std::move(sentence));
}

void check_callback(bool failed) {
  if (failed) throw std::runtime_error(failure().sentence);
}

bool is_not_deterministic() {
  return std::string_view(hstujit_last_error()).find(kNotDeterministic) != std::string_view::npos;
}

std::string without_determinism(std::string_view name) {
  return "hstujit::" + std::string(name) +
         " does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'";
}

void check_status(std::string_view name, hstujit_status status) {
  if (status == HSTUJIT_OK) return;
  if (!is_not_deterministic() || determinism() == Determinism::kAny) throw_failure(status, hstujit_last_error());
  throw_failure(HSTUJIT_UNSUPPORTED, without_determinism(name) + " (" + hstujit_last_error() + ")");
}

hstujit_context* context() {
  State& opened = state();
  if (opened.callbacks.context) {
    hstujit_context* const given = opened.callbacks.context();
    check_callback(given == nullptr);
    return given;
  }
  std::call_once(opened.context_made, [&] { check_status("", hstujit_context_create(nullptr, &opened.context)); });
  return opened.context;
}

void warn(const std::string& text) {
  if (callbacks().warn)
    check_callback(callbacks().warn(text.c_str()) != 0);
  else
    functions().aoti_torch_warn("", kFile, 0, text.c_str());
}

bool derivative_follows() { return callbacks().derivative_follows && callbacks().derivative_follows() == 1; }

Determinism determinism() {
  const Functions& torch = functions();
  const void* const context = torch.global_context();
  if (!torch.deterministic_algorithms(context)) return Determinism::kAny;
  return torch.deterministic_algorithms_warn_only(context) ? Determinism::kPreferred : Determinism::kDeterministic;
}

}  // namespace hstujit::torch

using namespace hstujit::torch;

extern "C" {

// Why the operators are not registered with PyTorch; "" where they are.
HSTUJIT_API const char* hstujit_torch_refusal() { return state().why_not.c_str(); }

// The sentence of the last failure on this thread, with its hstujit_status; -1 of one in a callback.
HSTUJIT_API const char* hstujit_torch_failure(std::int32_t* status) {
  *status = failure().status;
  return failure().sentence.c_str();
}
// Called by a callback that fails.
HSTUJIT_API void hstujit_torch_set_error(const char* text) { failure() = {text, kFailedInPython}; }

HSTUJIT_API void hstujit_torch_set_callbacks(const hstujit_torch_callbacks* given) { state().callbacks = *given; }

// Forgets every plan: they are of another context from now on.
HSTUJIT_API void hstujit_torch_forget() {
  for (const auto& registered : state().operators)
    if (registered) registered->plans.forget();
}

// How many plans of each operator are kept, 1 or more.
HSTUJIT_API void hstujit_torch_keep_plans(std::int32_t most) { PlanTable::most = static_cast<std::size_t>(most); }

// The context that operators run in, for hstujit_stats and the like. NULL where none can be made.
HSTUJIT_API hstujit_context* hstujit_torch_context() {
  try {
    return context();
  } catch (const std::exception&) {
    return nullptr;
  }
}

// For tests: PyTorch's functions as this library calls them, which may be replaced.
HSTUJIT_API Functions* hstujit_torch_functions() { return &state().functions; }

}  // extern "C"
