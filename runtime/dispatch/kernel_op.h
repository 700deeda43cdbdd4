// KernelOp: an op whose operator has kernels of its own.
//
// prepare() chooses, compiles and loads them (kernel_op.cpp); launch() looks into a table that needs no lock and goes
// (kernel_op_launch.cpp).
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/dispatch/op.h"
#include "runtime/dispatch/prepared_table.h"
#include "runtime/dispatch/wanted_kernel.h"
#include "runtime/launch/launcher.h"

namespace hstujit {

class KernelOp final : public Op {
 public:
  // Where the kernel of a bucket is worked out.
  enum class Where { kHere, kOwnThread };

  struct Choice {
    CompileRequest request;
    KernelBinaryPtr binary;
  };
  // The kernels of a bucket on their way. One that is ready already has none.
  struct Pending {
    int64_t bucket = 0;
    BatchClasses classes;
    std::vector<std::pair<BatchClass, std::future<Result<Choice>>>> kernels;

    void wait() const {
      for (const auto& [batch_class, kernel] : kernels) kernel.wait();
    }
  };

  static Result<std::unique_ptr<KernelOp>> create(EnginePtr engine, OpOptions options);

  // prepare() in two steps, so that the kernels of several ops are compiled side by side: the first chooses and
  // compiles, and needs no context; the second waits for it, and loads into the current context, which is `context`.
  // All classes of a bucket's batches get theirs.
  Pending begin(const DeviceContext& context, const DeviceSpec& device, int64_t max_seq_len, Where where);
  Status finish(const DeviceContext& context, Pending pending);

  Status launch(const hstujit_value* values, size_t count, cuda::Stream stream,
                const Workspace& workspace = {}) const override;
  Result<size_t> workspace_size(const hstujit_value* values, size_t count) const override;

 private:
  // The context that the host backend prepares in; an op of it has no other.
  static constexpr unsigned long long kHostContext = 0;

  KernelOp(EnginePtr engine, OpOptions options, ArgumentChecker checker);

  Status prepare_host(int64_t max_seq_len) override;
  Status prepare_cuda(int64_t max_seq_len, int device) override;
  void compile(const DeviceContext& context, const DeviceSpec& device, int64_t max_seq_len) override;
  // The kernel of a bucket, from wherever it is to be had: may compile, and tune. Needs no context.
  Result<Choice> choose(int ordinal, const DeviceSpec& device, const ProblemBucket& bucket);
  Result<LauncherPtr> load(const DeviceContext& context, Choice choice);
  int64_t max_seq_len_of(const hstujit_value* values) const;
  BatchClass class_of(const BatchClasses& classes, const hstujit_value* values) const;
  // The kernel that a launch of these values runs in the current context. No other value than max_seq_len is looked at
  // and, where classes of batches have kernels of their own, the sizes of seq_offsets and of the sequences' rows.
  Result<const Launcher*> find_launcher(const hstujit_value* values, size_t count) const;
  Status launch_host(const hstujit_value* values, size_t count) const;

  int offsets_argument_ = -1;  // seq_offsets
  int rows_argument_ = -1;     // the first tensor of all sequences' rows

  PreparedTable table_;  // written under the mutex
  std::atomic<const HostKernel*> host_{nullptr};
  std::mutex mutex_;  // of those who prepare; never held over a compile
  HostKernelPtr host_kernel_;
  EngineStats::Counter host_launches_;  // of host_
  CompilesAhead ahead_;
};

}  // namespace hstujit
