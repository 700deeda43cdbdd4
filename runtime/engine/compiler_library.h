// libhstujit_compiler.so as the runtime sees it: opened at the first cache miss, never before.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/kernel_config.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/env.h"
#include "compiler/support/json.h"
#include "compiler/support/status.h"

namespace hstujit {

// Names and bytes of what a request gave back; compiler/driver/compiler_api.h lists them.
using Blobs = std::map<std::string, std::string>;

struct CompileRequest {
  OpSpecPtr spec;
  Direction direction = Direction::kForward;
  KernelConfig config;
  DeviceSpec device;
  bool lineinfo = false;
};

struct NvrtcLibrary {
  std::string path;
  std::string version;     // "13.0"
  std::vector<int> archs;  // that it compiles for: {75, 80, 90, 100}; empty when it does not say
};

nlohmann::ordered_json to_json(const CompileRequest& request);

// How another process opens the same compiler and NVRTC: values of HSTUJIT_COMPILER_LIBRARY and HSTUJIT_NVRTC.
struct CompilerRecipe {
  std::string library;
  std::string nvrtc;
};

// Turns a request into a cubin. Any number of threads may call it at once. Tests give their own.
class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  virtual Result<Blobs> compile(const CompileRequest& request) const = 0;
  virtual Result<Blobs> emit(const CompileRequest& request) const = 0;
  // The NVRTC that compile would use; kNoCompiler with every place looked at.
  virtual Result<NvrtcLibrary> nvrtc() const = 0;
  virtual std::string path() const = 0;
  // None when only this process has it.
  virtual std::optional<CompilerRecipe> recipe() const { return std::nullopt; }
};

using KernelCompilerPtr = std::shared_ptr<const KernelCompiler>;

// Opens HSTUJIT_COMPILER_LIBRARY and nowhere else when that is set; else libhstujit_compiler.so beside this library,
// then where the loader looks. kNoCompiler with every place looked at, or when its ABI or its
// generator is another one: its cubins would lie under keys that say something else.
Result<KernelCompilerPtr> open_compiler_library(const Environment& environment);

}  // namespace hstujit
