// libhstujit_host.so as the runtime sees it: opened when an op of the host backend is prepared, never before.
#pragma once

#include <memory>
#include <string>

#include "compiler/spec/op_spec.h"
#include "compiler/support/env.h"
#include "compiler/support/status.h"
#include "runtime/launch/arguments.h"

namespace hstujit {

// One op instance compiled for the processor.
class HostKernel {
 public:
  virtual ~HostKernel() = default;
  // `values` are checked already and lie in host memory; returns when done.
  virtual Status launch(const Signature& signature, const hstujit_value* values) const = 0;
};

using HostKernelPtr = std::shared_ptr<const HostKernel>;

// Makes host kernels. Any number of threads may call it at once. Tests give their own.
class HostBackend {
 public:
  virtual ~HostBackend() = default;
  virtual Result<HostKernelPtr> create(const OpSpec& spec, Direction direction) const = 0;
  virtual std::string path() const = 0;
};

using HostBackendPtr = std::shared_ptr<const HostBackend>;

// HSTUJIT_HOST_LIBRARY, else libhstujit_host.so beside this library, then where the loader looks. kNoCompiler when
// there is none, or when its ABI or its generator is another one.
// `objects`: the folder where it keeps machine code between processes; empty: nowhere.
Result<HostBackendPtr> open_host_library(const Environment& environment, std::string objects);

}  // namespace hstujit
