// NVRTC, found at run time: CUDA source in, cubin and resource report out. Nothing links against it.
//
// One Nvrtc serves any number of threads; two threads compile two programs in the time of one. Compiling needs no
// GPU and no driver.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/nvrtc/resource_report.h"
#include "compiler/plan/compile_options.h"
#include "compiler/plan/launch_plan.h"
#include "compiler/support/status.h"

namespace hstujit {

struct CompileInput {
  std::string source;               // self-contained CUDA source: no include path is given to NVRTC
  std::string file_name;            // how messages name the source, e.g. "<entry>.cu"; no directory
  std::string entry;                // the extern "C" kernel that the cubin must define
  std::vector<std::string> others;  // and further ones, whose figures count as the entry's do
  std::string arch;                 // exact, with suffix: "sm_90a", "sm_80"
  int cpp_standard = kCppStandard;  // 17 or 20
  bool lineinfo = false;            // line tables for profilers; does not change the code
};

// For the kernels of a plan, which are all in `source`.
CompileInput compile_input(std::string source, const LaunchPlan& plan, std::string arch);

struct CompileOutput {
  std::string cubin;
  std::string log;
  Resources resources;
  std::vector<KernelReject> rejects;  // why the tuner must not choose it; the cubin is still correct
  std::string nvrtc_version;          // "13.0"
  double compile_ms = 0;
};

// Options that are passed to NVRTC: compile_options() of compiler/plan/compile_options.h, which are part of every cache
// key, and the request for a resource report, which changes no byte of the cubin.
std::vector<std::string> nvrtc_options(const CompileInput& input);

// Reads resources and rejects from the cubin and the log of an output. An error where the cubin lacks a kernel of the
// input.
Status read_figures(const CompileInput& input, CompileOutput& output);

class Nvrtc {
 public:
  // Looks for libnvrtc, 12.4 or newer, at `explicit_path` (a file, or a folder that holds it) and nowhere else when
  // that is not empty; else in the order of nvrtc_search.h. kNoCompiler with all places looked at when there is none.
  // The caller gives HSTUJIT_NVRTC as `explicit_path`.
  static Result<std::shared_ptr<const Nvrtc>> open(const std::string& explicit_path = {});

  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  // Compiles one program. kCompileFailed with the first error and its line when the source is rejected or the cubin
  // lacks the entry; `log`, when given, receives the compiler's whole text in either case.
  Result<CompileOutput> compile(const CompileInput& input, std::string* log = nullptr) const;

  const std::string& version() const;                // "13.0"
  const std::string& path() const;                   // the file or soname that was opened
  std::vector<int> supported_architectures() const;  // {75, 80, 86, 89, 90, 100, ...}; empty when NVRTC does not say

 private:
  struct Api;
  explicit Nvrtc(std::unique_ptr<Api> api);
  // NVRTC makes static objects in its first compile of a process. exit() destroys them before it waits for that
  // compile (compiler/support/running_compile.h): so the first one is of an empty kernel, and is over soon.
  void compile_first(const CompileInput& input) const;

  std::unique_ptr<Api> api_;
  mutable std::once_flag first_;
};

}  // namespace hstujit
