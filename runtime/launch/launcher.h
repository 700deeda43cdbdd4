// Launches one compiled kernel: checks the values, packs the kernel's parameters as its LaunchPlan says, enqueues it
// and what runs before and after it.
//
// A launch waits for no lock, allocates nothing, formats nothing and never synchronises, so that it can be captured in
// a CUDA graph and costs well under 5 microseconds.
#pragma once

#include <atomic>
#include <memory>

#include "compiler/plan/launch_plan.h"
#include "runtime/driver/module.h"
#include "runtime/driver/tensor_map.h"
#include "runtime/launch/arguments.h"
#include "runtime/launch/kept_maps.h"
#include "runtime/launch/workspace.h"

namespace hstujit {

class Launcher {
 public:
  // Bytes of kernel parameters that every supported device takes.
  static constexpr size_t kMaxParameterBytes = 4096;

  // kUnsupported when the plan asks for what this driver cannot do, kInternal when plan and signature disagree.
  // `launches` counts what launch() enqueues, where there is one.
  using Counter = std::shared_ptr<std::atomic<int64_t>>;
  static Result<std::shared_ptr<const Launcher>> create(CudaDriverPtr driver, ModulePtr module,
                                                        const Signature& signature, const LaunchPlan& plan,
                                                        Counter launches = nullptr);

  // The module's context must be current. Empty outputs, and a batch of no sequences, are done without a launch;
  // kInvalidArgument for a length of 0 that would leave outputs unwritten, and for a workspace that is null, misplaced
  // or too small for what these values need.
  Status launch(const hstujit_value* values, size_t count, cuda::Stream stream, const Workspace& workspace = {}) const;

  // Bytes of workspace that launch() needs for these values, which are checked as it does.
  Result<size_t> workspace_size(const hstujit_value* values, size_t count) const;

  const Module& module() const { return *module_; }
  const LaunchPlan& plan() const { return plan_; }

 private:
  Launcher(CudaDriverPtr driver, ModulePtr module, const LaunchPlan& plan, ArgumentChecker checker, Counter launches)
      : driver_(std::move(driver)),
        module_(std::move(module)),
        plan_(plan),
        checker_(std::move(checker)),
        launches_(std::move(launches)),
        maps_(count_maps(plan)) {}

  static size_t count_maps(const LaunchPlan& plan);
  Status validate_plan(const Signature& signature);
  Status validate_slot(const ParamSlot& slot, const Signature& signature);
  Status validate_workspace(const Signature& signature);
  Status validate_factors(const std::vector<GridFactor>& factors, const Signature& signature);
  Status check_map_rows(const hstujit_value* values) const;
  Status check_grids(const hstujit_value* values, int64_t grid) const;
  int64_t cluster_of(const hstujit_value* values, int64_t tiles) const;
  Status explain_empty_grid(const hstujit_value* values) const;
  Status check_divisors(const hstujit_value* values) const;
  // Without sequences no kernel runs, and a sum over all of them is 0.
  Status clear_sums(const hstujit_value* values, cuda::Stream stream) const;
  Status enqueue_main(int64_t grid, int64_t cluster, cuda::Stream stream, void** arguments) const;
  Status enqueue_following(const hstujit_value* values, cuda::Stream stream, void** arguments) const;
  TensorMapView map_view(const ParamSlot& slot, const hstujit_value* values) const;
  cuda::Error pack(const hstujit_value* values, void* const* regions, std::byte* parameters) const;

  CudaDriverPtr driver_;
  ModulePtr module_;
  LaunchPlan plan_;
  std::vector<uint32_t> offsets_;
  ArgumentChecker checker_;
  std::vector<bool> is_integer_;            // by argument: a scalar's member of hstujit_value
  std::vector<DataType> dtypes_;            // by argument
  std::vector<int> outputs_;                // all of them
  std::vector<int> sums_;                   // those that are accumulated
  std::vector<const ParamSlot*> divisors_;  // slots that hold one over an argument
  std::vector<int> mapped_;                 // arguments that kernels read through a tensor map
  std::vector<int64_t> clusters_;           // by size: how many are resident at a time; empty without clusters
  Counter launches_;                        // null: nobody counts
  mutable KeptMaps maps_;
};

using LauncherPtr = std::shared_ptr<const Launcher>;

}  // namespace hstujit
