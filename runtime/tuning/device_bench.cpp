#include "runtime/tuning/device_bench.h"

#include "compiler/plan/skeleton.h"
#include "compiler/spec/small_batch.h"
#include "runtime/tuning/adversarial_lengths.h"

namespace hstujit {

namespace {

constexpr uint64_t kSeed = 20261120;
constexpr int64_t kExtraRows = 70;  // more than the rows of the smallest tile

}  // namespace

Result<std::unique_ptr<DeviceBench>> DeviceBench::create(CudaDriverPtr driver, OpSpecPtr spec, Direction direction,
                                                         const DeviceSpec& device, int ordinal, const Lengths& lengths,
                                                         double alpha) {
  HSTUJIT_ASSIGN_OR_RETURN(ContextGuard guard, ContextGuard::enter(driver, ordinal));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceTimer timer, DeviceTimer::create(driver, device.l2_bytes));
  // Kernels for small batches are checked on one: their clusters form where tiles are few.
  const int64_t small = most_small_batch(*spec, direction, lengths.max_seq_len, device.sm_count);
  const bool is_small = static_cast<int64_t>(lengths.rows.size()) <= small;
  const Lengths adversarial = is_small ? adversarial_lengths(*spec, direction, lengths.max_seq_len, kSeed, small)
                                       : adversarial_lengths(*spec, direction, lengths.max_seq_len, kSeed);
  HSTUJIT_ASSIGN_OR_RETURN(ProblemData check,
                           make_problem_data(spec, direction, adversarial, kSeed, kExtraRows, alpha));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceProblem check_device, DeviceProblem::upload(driver, check, ordinal));
  HSTUJIT_ASSIGN_OR_RETURN(const ProblemData timed, make_timing_data(spec, direction, lengths, kSeed, alpha));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceProblem timed_device, DeviceProblem::upload(driver, timed, ordinal));
  return std::unique_ptr<DeviceBench>(new DeviceBench(std::move(driver), std::move(spec), direction, device,
                                                      std::move(guard), std::move(timer), std::move(check),
                                                      std::move(check_device), std::move(timed_device)));
}

Result<int> DeviceBench::load(const CompiledCandidate& candidate) {
  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(candidate.config.skeleton));
  const LaunchPlan plan = skeleton->launch_plan(*spec_, candidate.config, device_);
  HSTUJIT_ASSIGN_OR_RETURN(ModulePtr module, Module::load(driver_, guard_.device(), candidate.cubin, plan));
  HSTUJIT_ASSIGN_OR_RETURN(LauncherPtr launcher,
                           Launcher::create(driver_, std::move(module), spec_->signature(direction_), plan));
  HSTUJIT_RETURN_IF_ERROR(make_workspace(*launcher));
  launchers_.emplace(next_, std::move(launcher));
  return next_++;
}

Status DeviceBench::make_workspace(const Launcher& launcher) {
  for (const DeviceProblem* problem : {&check_device_, &timed_}) {
    HSTUJIT_ASSIGN_OR_RETURN(const size_t bytes, launcher.workspace_size(problem->values(), problem->count()));
    if (bytes <= workspace_.size()) continue;
    // The smaller one stays until there is a larger one: candidates that are loaded already use it.
    HSTUJIT_ASSIGN_OR_RETURN(workspace_, DeviceBuffer::allocate(driver_, bytes));
  }
  return {};
}

Result<Agreement> DeviceBench::agreement(int number) {
  if (reference_.empty()) reference_ = reference_outputs(check_);
  HSTUJIT_RETURN_IF_ERROR(check_device_.poison_outputs(timer_.stream()));
  HSTUJIT_RETURN_IF_ERROR(workspace_.fill(kPoison, timer_.stream()));
  HSTUJIT_RETURN_IF_ERROR(
      launchers_.at(number)->launch(check_device_.values(), check_device_.count(), timer_.stream(), workspace_.data()));
  HSTUJIT_CUDA_CHECK(*driver_, stream_synchronize(timer_.stream()));
  HSTUJIT_ASSIGN_OR_RETURN(const auto outputs, check_device_.download_outputs());
  return compare(check_, reference_, outputs);
}

Status DeviceBench::validate(int number) {
  HSTUJIT_ASSIGN_OR_RETURN(const Agreement result, agreement(number));
  return result.good() ? Status() : Status(Code::kCheckFailed, result.sentence);
}

BenchState DeviceBench::state() {
  // The first answer may be about a launch that failed alone; a context that died says so again and again.
  for (int i = 0; i < 2; ++i) {
    if (driver_->stream_synchronize(timer_.stream()) == 0) return BenchState::kSound;
  }
  return BenchState::kCrashed;
}

Result<std::vector<std::vector<double>>> DeviceBench::time(const std::vector<int>& numbers, int repeats) {
  std::vector<LaunchFunction> kernels;
  for (const int number : numbers) {
    kernels.emplace_back([this, launcher = launchers_.at(number)](cuda::Stream stream) {
      return launcher->launch(timed_.values(), timed_.count(), stream, workspace_.data());
    });
  }
  return timer_.time(kernels, repeats, [&](size_t kernel) {
    launched_ = numbers[kernel];
    launching(launched_);
  });
}

}  // namespace hstujit
