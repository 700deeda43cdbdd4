#include "runtime/dispatch/kernel_op.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/spec/sequence_rows.h"
#include "compiler/support/threads.h"

namespace hstujit {

KernelOp::KernelOp(EnginePtr engine, OpOptions options, ArgumentChecker checker)
    : Op(std::move(engine), std::move(options), std::move(checker)),
      offsets_argument_(find_argument(signature_, Semantic::kOffsets, kSequenceAxis)) {
  const auto has_all_rows = [](const Argument& argument) {
    return has_jagged_rows(argument) && row_axis(argument) == kSequenceAxis;
  };
  const auto found = std::ranges::find_if(signature_, has_all_rows);
  if (found != signature_.end()) rows_argument_ = static_cast<int>(found - signature_.begin());
}

Result<std::unique_ptr<KernelOp>> KernelOp::create(EnginePtr engine, OpOptions options) {
  HSTUJIT_ASSIGN_OR_RETURN(ArgumentChecker checker,
                           ArgumentChecker::create(options.instance.spec->signature(options.direction)));
  return std::unique_ptr<KernelOp>(new KernelOp(std::move(engine), std::move(options), std::move(checker)));
}

Status KernelOp::prepare_host(int64_t max_seq_len) {
  const int64_t bucket = bucket_of(max_seq_len);
  if (table_.find(kHostContext, bucket) != nullptr) return {};
  HostKernelPtr kernel;
  if (host_.load(std::memory_order_acquire) == nullptr) {
    HSTUJIT_ASSIGN_OR_RETURN(const HostBackendPtr backend, engine_->host());
    HSTUJIT_ASSIGN_OR_RETURN(kernel, backend->create(spec(), options_.direction));
  }
  const std::lock_guard lock(mutex_);
  if (!host_kernel_) {
    host_kernel_ = std::move(kernel);
    const std::string name = fmt::format("{}_{}_host", spec().op(), to_string(options_.direction));
    host_launches_ = engine_->stats().launches(std::string(spec().op()), name, "host:" + name);
    host_.store(host_kernel_.get(), std::memory_order_release);
  }
  // One kernel serves every length, but what launches is what was prepared, as on a device.
  table_.add({nullptr, kHostContext, bucket, {}, {}});
  return {};
}

Status KernelOp::prepare_cuda(int64_t max_seq_len, int device) {
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine_->driver());
  HSTUJIT_ASSIGN_OR_RETURN(const ContextGuard guard, ContextGuard::enter(driver, device));
  const DeviceContext& context = guard.device();
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceSpec spec, engine_->device(context.ordinal));
  return finish(context, begin(context, spec, max_seq_len, Where::kHere));
}

void KernelOp::compile(const DeviceContext& context, const DeviceSpec& device, int64_t max_seq_len) {
  begin(context, device, max_seq_len, Where::kHere).wait();
}

KernelOp::Pending KernelOp::begin(const DeviceContext& context, const DeviceSpec& device, int64_t max_seq_len,
                                  Where where) {
  Pending pending{bucket_of(max_seq_len), {}, {}};
  if (table_.find(context.id, pending.bucket) != nullptr) return pending;
  pending.classes = batch_classes(options_.instance, options_.direction, pending.bucket, device);
  const auto start = [&](const ProblemBucket& bucket, bool own_thread) {
    const auto work = [this, ordinal = context.ordinal, device, bucket] { return choose(ordinal, device, bucket); };
    return own_thread ? start_async(work) : std::async(std::launch::deferred, work);
  };
  // Compiled side by side, and tuned one after the other: all would time on one device.
  const bool side_by_side = engine_->on_miss() != MissPolicy::kTune;
  std::vector<BatchClass> classes = pending.classes.list();
  // Classes for which nothing is timed may get what others have.
  std::ranges::stable_partition(classes, [&](BatchClass batch_class) {
    return is_tuned(options_.instance, options_.direction, {pending.bucket, batch_class}, device);
  });
  for (const BatchClass batch_class : classes) {
    const bool own_thread = side_by_side && (where == Where::kOwnThread || batch_class != BatchClass::kAny);
    pending.kernels.emplace_back(batch_class, start({pending.bucket, batch_class}, own_thread));
  }
  return pending;
}

Status KernelOp::finish(const DeviceContext& context, Pending pending) {
  if (pending.kernels.empty()) return {};
  Prepared prepared{context.context, context.id, pending.bucket, pending.classes, {}};
  for (auto& [batch_class, kernel] : pending.kernels) {
    HSTUJIT_ASSIGN_OR_RETURN(Choice choice, kernel.get());
    HSTUJIT_ASSIGN_OR_RETURN(LauncherPtr launcher, load(context, std::move(choice)));
    for (const LauncherPtr& other : prepared.launchers) {
      if (other && &other->module() == &launcher->module()) launcher = other;
    }
    prepared.launchers[static_cast<size_t>(batch_class)] = std::move(launcher);
  }
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine_->driver());
  driver_.store(driver.get(), std::memory_order_release);
  const std::lock_guard lock(mutex_);
  table_.add(std::move(prepared));
  return {};
}

Result<KernelOp::Choice> KernelOp::choose(int ordinal, const DeviceSpec& device, const ProblemBucket& bucket) {
  const WantedKernel wanted{
      options_.instance, options_.direction, options_.length_mode, options_.restriction, device, bucket};
  // A process that trains prepares the other direction next.
  const auto on_miss = [&] { ahead_.start(engine_, wanted, ordinal); };
  HSTUJIT_ASSIGN_OR_RETURN(SuppliedKernel kernel, obtain_kernel(*engine_, wanted, ordinal, on_miss));
  return Choice{std::move(kernel.request), std::move(kernel.binary)};
}

Result<LauncherPtr> KernelOp::load(const DeviceContext& context, Choice choice) {
  const CompileRequest& request = choice.request;
  KernelBinaryPtr& binary = choice.binary;
  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(request.config.skeleton));
  const LaunchPlan plan = skeleton->launch_plan(*request.spec, request.config, request.device);
  Result<ModulePtr> module = engine_->module(*binary, context, plan);
  if (!module.ok() && module.status().code() == Code::kCompileFailed && binary->origin == KernelOrigin::kDirectory &&
      engine_->on_miss() != MissPolicy::kFail) {
    // Whole, by its checksum, and yet no kernel for this device: whoever wrote it had another idea of the key.
    engine_->log().event(
        LogCategory::kCache, "rejected",
        {{"key", binary->digest}, {"directory", binary->directory}, {"reason", module.status().message()}});
    HSTUJIT_ASSIGN_OR_RETURN(binary, engine_->kernels().replace(request, *binary));
    module = engine_->module(*binary, context, plan);
  }
  if (!module.ok()) return module.status();
  {
    const std::lock_guard lock(mutex_);
    if (LauncherPtr shared = table_.launcher_of(**module)) return shared;
  }
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine_->driver());
  return Launcher::create(driver, *module, signature_, plan,
                          engine_->stats().launches(std::string(request.spec->op()), plan.kernel_name, binary->digest));
}

}  // namespace hstujit
