#include "compiler/nvrtc/nvrtc.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "compiler/nvrtc/kept_interrupt.h"
#include "compiler/nvrtc/nvrtc_search.h"
#include "compiler/support/arch.h"
#include "compiler/support/dynamic_library.h"
#include "compiler/support/running_compile.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

using Program = void*;  // nvrtcProgram is a pointer to a type that NVRTC keeps to itself

constexpr int kSuccess = 0;
constexpr int kErrorOutOfMemory = 1;
constexpr int kErrorInvalidOption = 5;
constexpr int kErrorCompilation = 6;
constexpr int kOldestMajor = 12;
constexpr int kOldestMinor = 4;  // the first that compiles every PTX instruction of the sm_90a templates

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace

struct Nvrtc::Api {
  explicit Api(DynamicLibrary opened) : library(std::move(opened)) {}

  DynamicLibrary library;
  std::string path;
  std::string version_text;
  int major = 0;
  int minor = 0;

  int (*version)(int*, int*) = nullptr;
  int (*num_supported_archs)(int*) = nullptr;
  int (*supported_archs)(int*) = nullptr;
  int (*create_program)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile_program)(Program, int, const char* const*) = nullptr;
  int (*destroy_program)(Program*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  const char* (*error_string)(int) = nullptr;

  template <typename Function>
  Status bind(Function*& target, const char* name) {
    HSTUJIT_ASSIGN_OR_RETURN(target, library.function<Function>(name));
    return {};
  }

  Status bind_all() {
    HSTUJIT_RETURN_IF_ERROR(bind(version, "nvrtcVersion"));
    HSTUJIT_RETURN_IF_ERROR(bind(num_supported_archs, "nvrtcGetNumSupportedArchs"));
    HSTUJIT_RETURN_IF_ERROR(bind(supported_archs, "nvrtcGetSupportedArchs"));
    HSTUJIT_RETURN_IF_ERROR(bind(create_program, "nvrtcCreateProgram"));
    HSTUJIT_RETURN_IF_ERROR(bind(compile_program, "nvrtcCompileProgram"));
    HSTUJIT_RETURN_IF_ERROR(bind(destroy_program, "nvrtcDestroyProgram"));
    HSTUJIT_RETURN_IF_ERROR(bind(log_size, "nvrtcGetProgramLogSize"));
    HSTUJIT_RETURN_IF_ERROR(bind(log, "nvrtcGetProgramLog"));
    HSTUJIT_RETURN_IF_ERROR(bind(cubin_size, "nvrtcGetCUBINSize"));
    HSTUJIT_RETURN_IF_ERROR(bind(cubin, "nvrtcGetCUBIN"));
    return bind(error_string, "nvrtcGetErrorString");
  }

  // libnvrtc opens its builtins by name at the first compile and has no RUNPATH: a copy that is loaded already is
  // what the loader then finds. When there is none beside it, the loader's own places may still have it.
  void open_builtins_beside() const {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    std::vector<std::string> candidates;
    for (const fs::path& folder : {fs::path(path).parent_path(), real.parent_path()}) {
      if (!folder.empty()) candidates.push_back((folder / ("libnvrtc-builtins.so." + version_text)).native());
    }
    const auto kept =
        DynamicLibrary::open("libnvrtc-builtins", candidates, Code::kNoCompiler, DynamicLibrary::Keep::kForever);
    (void)kept;  // kForever: it stays loaded when this handle goes
  }

  Status check(int result, const char* call) const {
    if (result == kSuccess) return {};
    // Only these two say something about the source; another failure may be of the moment.
    const bool rejected = result == kErrorInvalidOption || result == kErrorCompilation;
    const Code code = result == kErrorOutOfMemory ? Code::kOutOfMemory
                      : rejected                  ? Code::kCompileFailed
                                                  : Code::kInternal;
    return Status(code, fmt::format("{} of NVRTC {} failed: {}", call, version_text, error_string(result)));
  }
};

namespace {

// A program, destroyed at the end of its scope.
template <typename Api>
class ProgramHandle {
 public:
  explicit ProgramHandle(const Api& api) : api_(api) {}
  ProgramHandle(const ProgramHandle&) = delete;
  ProgramHandle& operator=(const ProgramHandle&) = delete;
  ~ProgramHandle() {
    if (program_ != nullptr) api_.destroy_program(&program_);
  }
  Program get() const { return program_; }
  Program* address() { return &program_; }

 private:
  const Api& api_;
  Program program_ = nullptr;
};

// The first line that says what is wrong, as "file(line): error: text", else the last words of the log.
std::string first_error(std::string_view log) {
  std::string last;
  for (const std::string& line : split(log, '\n')) {
    if (line.find("error") != std::string::npos || line.starts_with("ptxas fatal")) return line;
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last.empty() ? "the compiler gave no reason" : last;
}

Status check_input(const CompileInput& input) {
  if (input.source.empty()) return Status(Code::kInvalidArgument, "source is empty; it must be CUDA source text");
  if (input.source.find('\0') != std::string::npos)
    return Status(Code::kInvalidArgument, "source contains a zero byte; it must be text");
  if (input.entry.empty())
    return Status(Code::kInvalidArgument, "entry is empty; it must name an extern \"C\" kernel of the source");
  if (!arch_number(input.arch))
    return Status(Code::kInvalidArgument,
                  fmt::format("arch is {}; it must be like \"sm_80\" or \"sm_90a\"", quote(input.arch)));
  if (input.cpp_standard != 17 && input.cpp_standard != 20)
    return Status(Code::kInvalidArgument, fmt::format("cpp_standard is {}; it must be 17 or 20", input.cpp_standard));
  return {};
}

}  // namespace

std::vector<std::string> nvrtc_options(const CompileInput& input) {
  std::vector<std::string> options = compile_options(input.arch, input.cpp_standard, input.lineinfo);
  options.emplace_back("-Xptxas=-v");
  return options;
}

Nvrtc::Nvrtc(std::unique_ptr<Api> api) : api_(std::move(api)) {}
Nvrtc::~Nvrtc() = default;

const std::string& Nvrtc::version() const { return api_->version_text; }
const std::string& Nvrtc::path() const { return api_->path; }

CompileInput compile_input(std::string source, const LaunchPlan& plan, std::string arch) {
  CompileInput input;
  input.source = std::move(source);
  input.entry = plan.kernel_name;
  for (const FollowingKernel& following : plan.following) input.others.push_back(following.kernel_name);
  input.arch = std::move(arch);
  return input;
}

Result<std::shared_ptr<const Nvrtc>> Nvrtc::open(const std::string& explicit_path) {
  const NvrtcPlaces places = places_of_process();
  const std::vector<std::string> candidates =
      explicit_path.empty() ? nvrtc_candidates(places) : explicit_candidates(explicit_path);
  std::string tried;
  const auto note = [&tried](const std::string& sentence) { tried += (tried.empty() ? "" : "; ") + sentence; };

  auto next = candidates.begin();
  while (next != candidates.end()) {
    auto library =
        DynamicLibrary::open("libnvrtc", {next, candidates.end()}, Code::kNoCompiler, DynamicLibrary::Keep::kForever);
    if (!library.ok()) {
      note(library.status().message());
      break;
    }
    next = std::find(next, candidates.end(), library->name()) + 1;
    auto api = std::make_unique<Api>(std::move(library).value());
    api->path = api->library.path().empty() ? api->library.name() : api->library.path();
    if (Status status = api->bind_all(); !status.ok()) {
      note(status.message());
      continue;
    }
    if (api->version(&api->major, &api->minor) != kSuccess) {
      note(fmt::format("{} does not tell its version", api->path));
      continue;
    }
    api->version_text = fmt::format("{}.{}", api->major, api->minor);
    if (std::pair(api->major, api->minor) < std::pair(kOldestMajor, kOldestMinor)) {
      note(fmt::format("{} is NVRTC {}, but {}.{} or newer is needed", api->path, api->version_text, kOldestMajor,
                       kOldestMinor));
      continue;
    }
    api->open_builtins_beside();
    return std::shared_ptr<const Nvrtc>(new Nvrtc(std::move(api)));
  }

  if (!explicit_path.empty())
    return Status(
        Code::kNoCompiler,
        fmt::format("NVRTC cannot be used from {}, as HSTUJIT_NVRTC says: {}; unset the variable where NVRTC is "
                    "installed (pip install nvidia-cuda-nvrtc), or name one",
                    quote(explicit_path), tried));
  return Status(Code::kNoCompiler,
                fmt::format("NVRTC was not found, so nothing can be compiled; set HSTUJIT_NVRTC to libnvrtc.so.12 or "
                            "libnvrtc.so.13 or to its folder. {}. Looked for it in: {}",
                            tried, join(nvrtc_folders(places))));
}

std::vector<int> Nvrtc::supported_architectures() const {
  int count = 0;
  if (api_->num_supported_archs(&count) != kSuccess || count <= 0) return {};
  std::vector<int> archs(static_cast<size_t>(count));
  if (api_->supported_archs(archs.data()) != kSuccess) return {};
  return archs;
}

namespace {

// With the options of the input, whatever the program is of.
template <typename Api, typename Program>
int compile_program(const Api& api, Program program, const CompileInput& input) {
  const std::vector<std::string> options = nvrtc_options(input);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const KeptInterrupt kept;
  return api.compile_program(program, static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace

void Nvrtc::compile_first(const CompileInput& input) const {
  const FirstCompile first;
  if (!first.status().ok()) return;
  ProgramHandle program(*api_);
  const char* const source = "extern \"C\" __global__ void nothing() {}";
  if (api_->create_program(program.address(), source, "nothing.cu", 0, nullptr, nullptr) != kSuccess) return;
  compile_program(*api_, program.get(), input);
}

Result<CompileOutput> Nvrtc::compile(const CompileInput& input, std::string* log) const {
  HSTUJIT_RETURN_IF_ERROR(check_input(input));
  const std::vector<int> archs = supported_architectures();
  if (!archs.empty() && std::find(archs.begin(), archs.end(), arch_number(input.arch)) == archs.end()) {
    std::vector<std::string> names;
    for (const int arch : archs) names.push_back(fmt::format("sm_{}", arch));
    return Status(Code::kUnsupported, fmt::format("NVRTC {} at {} cannot compile for {}; it knows {}", version(),
                                                  path(), quote(input.arch), join(names)));
  }

  std::call_once(first_, [&] { compile_first(input); });
  const RunningCompile running;
  HSTUJIT_RETURN_IF_ERROR(running.status());
  const auto start = std::chrono::steady_clock::now();
  ProgramHandle program(*api_);
  const std::string file_name = input.file_name.empty() ? input.entry + ".cu" : input.file_name;
  HSTUJIT_RETURN_IF_ERROR(
      api_->check(api_->create_program(program.address(), input.source.c_str(), file_name.c_str(), 0, nullptr, nullptr),
                  "nvrtcCreateProgram"));

  const int result = compile_program(*api_, program.get(), input);

  CompileOutput output;
  output.nvrtc_version = version();
  size_t size = 0;
  if (api_->log_size(program.get(), &size) == kSuccess && size > 1) {
    output.log.resize(size);
    if (api_->log(program.get(), output.log.data()) != kSuccess) output.log.clear();
    while (!output.log.empty() && output.log.back() == '\0') output.log.pop_back();
  }
  if (log != nullptr) *log = output.log;
  if (result != kSuccess) {
    Status status = api_->check(result, "nvrtcCompileProgram");
    return Status(status.code(), fmt::format("{}: {}", status.message(), first_error(output.log)));
  }

  HSTUJIT_RETURN_IF_ERROR(api_->check(api_->cubin_size(program.get(), &size), "nvrtcGetCUBINSize"));
  output.cubin.resize(size);
  HSTUJIT_RETURN_IF_ERROR(api_->check(api_->cubin(program.get(), output.cubin.data()), "nvrtcGetCUBIN"));
  output.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();

  HSTUJIT_RETURN_IF_ERROR(read_figures(input, output));
  return output;
}

Status read_figures(const CompileInput& input, CompileOutput& output) {
  std::vector<std::string> entries{input.entry};
  entries.insert(entries.end(), input.others.begin(), input.others.end());
  HSTUJIT_ASSIGN_OR_RETURN(output.resources, merged_resources(output.cubin, output.log, entries));
  output.rejects = reject_reasons(output.resources, output.log);
  return {};
}

}  // namespace hstujit
