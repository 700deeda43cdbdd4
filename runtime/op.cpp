#include "runtime/op.h"

#include <fmt/format.h>

#include <future>

#include "compiler/spec/sequence_rows.h"
#include "compiler/support/threads.h"

namespace hstujit {

Op::Op(EnginePtr engine, OpOptions options, ArgumentChecker checker)
    : engine_(std::move(engine)),
      options_(std::move(options)),
      signature_(options_.instance.spec->signature(options_.direction)),
      checker_(std::move(checker)),
      max_seq_len_argument_(find_argument(signature_, Semantic::kMaxRows, kSequenceAxis)),
      offsets_argument_(find_argument(signature_, Semantic::kOffsets, kSequenceAxis)) {
  if (max_seq_len_argument_ >= 0) checker_.require_not_negative(max_seq_len_argument_);
}

Result<std::unique_ptr<Op>> Op::create(EnginePtr engine, OpOptions options) {
  const OpSpec& spec = *options.instance.spec;
  if (!spec.supports(options.direction)) {
    return Status(Code::kUnsupported,
                  fmt::format("direction is \"{}\", but {} has no {} kernel", to_string(options.direction), spec.op(),
                              to_string(options.direction)));
  }
  HSTUJIT_ASSIGN_OR_RETURN(ArgumentChecker checker, ArgumentChecker::create(spec.signature(options.direction)));
  return std::unique_ptr<Op>(new Op(std::move(engine), std::move(options), std::move(checker)));
}

Status Op::prepare(int64_t max_seq_len, int device) {
  if (max_seq_len_argument_ >= 0) {
    const int64_t max = signature_[max_seq_len_argument_].max;
    if (max_seq_len < 1 || max_seq_len > max) {
      return Status(Code::kInvalidArgument,
                    fmt::format("max_seq_len is {}; it must be between 1 and {}", max_seq_len, max));
    }
  }
  if (options_.backend == Backend::kHost) return prepare_host(max_seq_len);
  return prepare_cuda(max_seq_len, device);
}

Status Op::prepare_host(int64_t max_seq_len) {
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
    host_.store(host_kernel_.get(), std::memory_order_release);
  }
  // One kernel serves every length, but what launches is what was prepared, as on a device.
  table_.add({nullptr, kHostContext, bucket, nullptr});
  return {};
}

Status Op::prepare_cuda(int64_t max_seq_len, int device) {
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine_->driver());
  HSTUJIT_ASSIGN_OR_RETURN(const ContextGuard guard, ContextGuard::enter(driver, device));
  const DeviceContext& context = guard.device();
  const int64_t bucket = bucket_of(max_seq_len);
  if (table_.find(context.id, bucket) != nullptr) return {};
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceSpec spec, engine_->device(context.ordinal));
  const int64_t max_small = max_small_batch(options_.instance, options_.direction, bucket, spec);
  // The two are compiled side by side, and tuned one after the other: both would time on one device.
  const bool at_once = engine_->on_miss() != MissPolicy::kTune;
  std::future<Result<Choice>> small;
  if (max_small > 0) {
    const auto choose_small = [&] { return choose(context.ordinal, spec, {bucket, true}); };
    small = at_once ? start_async(choose_small) : std::async(std::launch::deferred, choose_small);
  }
  HSTUJIT_ASSIGN_OR_RETURN(Choice choice, choose(context.ordinal, spec, bucket));
  Prepared prepared{context.context, context.id, bucket, nullptr, nullptr, max_small};
  HSTUJIT_ASSIGN_OR_RETURN(prepared.launcher, load(context, std::move(choice)));
  if (max_small > 0) {
    HSTUJIT_ASSIGN_OR_RETURN(choice, small.get());
    HSTUJIT_ASSIGN_OR_RETURN(prepared.small_launcher, load(context, std::move(choice)));
  }
  driver_.store(driver.get(), std::memory_order_release);
  const std::lock_guard lock(mutex_);
  table_.add(std::move(prepared));
  return {};
}

Result<Op::Choice> Op::choose(int ordinal, const DeviceSpec& device, const ProblemBucket& bucket) {
  const WantedKernel wanted{
      options_.instance, options_.direction, options_.length_mode, options_.restriction, device, bucket};
  // Whoever trains prepares the other direction next.
  const auto on_miss = [&] { ahead_.start(engine_, wanted, ordinal); };
  HSTUJIT_ASSIGN_OR_RETURN(SuppliedKernel kernel, obtain_kernel(*engine_, wanted, ordinal, on_miss));
  return Choice{std::move(kernel.request), std::move(kernel.binary)};
}

Result<LauncherPtr> Op::load(const DeviceContext& context, Choice choice) {
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
  return Launcher::create(driver, *module, signature_, plan);
}

Status Op::not_prepared(int64_t max_seq_len) const {
  return Status(Code::kNotPrepared,
                fmt::format("no kernel of {} {} is prepared for max_seq_len {} (bucket {}) {}; call hstujit_prepare "
                            "before hstujit_launch",
                            spec().op(), to_string(options_.direction), max_seq_len, bucket_of(max_seq_len),
                            options_.backend == Backend::kHost ? "on the host backend" : "in the current context"));
}

}  // namespace hstujit
