// Op: one operator instance and direction in one engine, with the kernels that were prepared for it.
//
// prepare() may take its time (op.cpp); launch() looks into a table that needs no lock and goes (op_launch.cpp).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "compiler/spec/config.h"
#include "runtime/engine.h"
#include "runtime/kernel_choice.h"
#include "runtime/launcher.h"
#include "runtime/prepared_table.h"
#include "runtime/problem_bucket.h"
#include "runtime/wanted_kernel.h"

namespace hstujit {

enum class Backend { kCuda, kHost };

struct OpOptions {
  Instance instance;  // its lengths are for tuning on a miss only
  Direction direction = Direction::kForward;
  Backend backend = Backend::kCuda;
  LengthMode length_mode = LengthMode::kPow2;
  std::vector<int64_t> listed;  // lengths of LengthMode::kStatic
  Restriction restriction = {};
};

class Op {
 public:
  // kUnsupported when the operator has no such direction, or a signature that launches have no room for.
  static Result<std::unique_ptr<Op>> create(EnginePtr engine, OpOptions options);

  const OpSpec& spec() const { return *options_.instance.spec; }
  Direction direction() const { return options_.direction; }
  const Signature& signature() const { return signature_; }

  // Makes the kernel of max_seq_len's bucket ready in the current context, or in that of `device` when >= 0; with that
  // for small batches, where the instance asks for one.
  Status prepare(int64_t max_seq_len, int device);

  // `workspace` as Launcher::launch has it; the host backend needs none.
  Status launch(const hstujit_value* values, size_t count, cuda::Stream stream, const Workspace& workspace = {}) const;

  // Bytes of device memory that launch() needs beside these values. They follow from the kernel, which must be prepared
  // as for a launch: kNotPrepared. Where it needs none, no value is looked at but those that choose the kernel.
  Result<size_t> workspace_size(const hstujit_value* values, size_t count) const;

 private:
  // The context that the host backend prepares in; an op of it has no other.
  static constexpr unsigned long long kHostContext = 0;

  Op(EnginePtr engine, OpOptions options, ArgumentChecker checker);

  int64_t bucket_of(int64_t max_seq_len) const {
    return problem_bucket(signature_, options_.length_mode, max_seq_len, options_.listed);
  }
  Status prepare_host(int64_t max_seq_len);
  Status prepare_cuda(int64_t max_seq_len, int device);
  // The kernel of a bucket, from wherever it is to be had: may compile, and tune. Needs no context.
  struct Choice {
    CompileRequest request;
    KernelBinaryPtr binary;
  };
  Result<Choice> choose(int ordinal, const DeviceSpec& device, const ProblemBucket& bucket);
  Result<LauncherPtr> load(const DeviceContext& context, Choice choice);
  int64_t sequences_of(const hstujit_value* values) const;
  Status not_prepared(int64_t max_seq_len) const;
  // The kernel that a launch of these values runs in the current context. No other value than max_seq_len is looked at
  // and, where small batches have a kernel of their own, the size of seq_offsets.
  Result<const Launcher*> find_launcher(const hstujit_value* values, size_t count) const;
  Status launch_host(const hstujit_value* values, size_t count) const;

  EnginePtr engine_;
  OpOptions options_;
  Signature signature_;
  ArgumentChecker checker_;
  int max_seq_len_argument_ = -1;  // -1: the operator has no sequences, and one bucket
  int offsets_argument_ = -1;      // seq_offsets

  PreparedTable table_;                             // written under the mutex
  std::atomic<const CudaDriver*> driver_{nullptr};  // the engine's, for launches
  std::atomic<const HostKernel*> host_{nullptr};
  std::mutex mutex_;  // of those who prepare; never held over a compile
  HostKernelPtr host_kernel_;
  CompilesAhead ahead_;
};

}  // namespace hstujit
