#include "operations/tuning/timing/device_bench.h"

#include "compiler/plan/skeleton.h"
#include "compiler/spec/small_batch.h"
#include "operations/tuning/data/adversarial_lengths.h"

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
  std::vector<Check> checks;
  const auto add_check = [&](const Lengths& adversarial) -> Status {
    HSTUJIT_ASSIGN_OR_RETURN(ProblemData data,
                             make_problem_data(spec, direction, adversarial, kSeed, kExtraRows, alpha));
    HSTUJIT_ASSIGN_OR_RETURN(DeviceProblem problem, DeviceProblem::upload(driver, data, ordinal));
    checks.push_back({std::move(data), std::move(problem), {}});
    return {};
  };
  HSTUJIT_RETURN_IF_ERROR(add_check(adversarial_lengths(*spec, direction, lengths.max_seq_len, kSeed)));
  // Kernels that are timed on a small batch may form clusters there, where tiles are few.
  const int64_t small = max_small_batch(*spec, direction, lengths.max_seq_len, device.sm_count);
  if (static_cast<int64_t>(lengths.rows.size()) <= small) {
    HSTUJIT_RETURN_IF_ERROR(add_check(adversarial_lengths(*spec, direction, lengths.max_seq_len, kSeed, small)));
  }
  HSTUJIT_ASSIGN_OR_RETURN(const ProblemData timed, make_timing_data(spec, direction, lengths, kSeed, alpha));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceProblem timed_device, DeviceProblem::upload(driver, timed, ordinal));
  return std::unique_ptr<DeviceBench>(new DeviceBench(std::move(driver), std::move(spec), direction, device,
                                                      std::move(guard), std::move(timer), std::move(checks),
                                                      std::move(timed_device)));
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
  const auto grow = [&](const DeviceProblem& problem) -> Status {
    HSTUJIT_ASSIGN_OR_RETURN(const size_t bytes, launcher.workspace_size(problem.values(), problem.count()));
    if (bytes <= workspace_.size()) return {};
    // The smaller one stays until there is a larger one: candidates that are loaded already use it.
    HSTUJIT_ASSIGN_OR_RETURN(workspace_, DeviceBuffer::allocate(driver_, bytes));
    return {};
  };
  for (const Check& check : checks_) HSTUJIT_RETURN_IF_ERROR(grow(check.problem));
  return grow(timed_);
}

Result<Agreement> DeviceBench::agreement(int number, Check& check) {
  if (check.reference.empty()) check.reference = reference_outputs(check.data);
  HSTUJIT_RETURN_IF_ERROR(check.problem.poison_outputs(timer_.stream()));
  HSTUJIT_RETURN_IF_ERROR(workspace_.fill(kPoison, timer_.stream()));
  HSTUJIT_RETURN_IF_ERROR(launchers_.at(number)->launch(check.problem.values(), check.problem.count(), timer_.stream(),
                                                        {workspace_.data(), workspace_.size()}));
  HSTUJIT_CUDA_CHECK(*driver_, stream_synchronize(timer_.stream()));
  HSTUJIT_ASSIGN_OR_RETURN(const auto outputs, check.problem.download_outputs());
  return compare(check.data, check.reference, outputs);
}

Status DeviceBench::validate(int number) {
  for (Check& check : checks_) {
    HSTUJIT_ASSIGN_OR_RETURN(const Agreement result, agreement(number, check));
    if (!result.good()) return Status(Code::kCheckFailed, result.sentence);
  }
  return {};
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
      return launcher->launch(timed_.values(), timed_.count(), stream, {workspace_.data(), workspace_.size()});
    });
  }
  return timer_.time(kernels, repeats, [&](size_t kernel) {
    launched_ = numbers[kernel];
    launching(launched_);
  });
}

}  // namespace hstujit
