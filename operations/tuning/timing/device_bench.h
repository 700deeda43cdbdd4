// Candidates on a GPU of this process.
#pragma once

#include <map>

#include "compiler/spec/device_spec.h"
#include "operations/tuning/data/device_problem.h"
#include "operations/tuning/timing/candidate_bench.h"
#include "operations/tuning/timing/timer.h"
#include "runtime/launch/launcher.h"

namespace hstujit {

class DeviceBench final : public CandidateBench {
 public:
  // Times on `lengths`, validates on adversarial ones of the same max_seq_len, both with this alpha. The context of
  // device `ordinal` is entered here and stays current on this thread for the object's life.
  static Result<std::unique_ptr<DeviceBench>> create(CudaDriverPtr driver, OpSpecPtr spec, Direction direction,
                                                     const DeviceSpec& device, int ordinal, const Lengths& lengths,
                                                     double alpha);

  Result<int> load(const CompiledCandidate& candidate) override;
  void unload(int number) override { launchers_.erase(number); }
  Status validate(int number) override;
  Result<std::vector<std::vector<double>>> time(const std::vector<int>& numbers, int repeats) override;
  // kCrashed is for this process's life: its other benches of the device, and everybody else's work on it, fail as
  // well.
  BenchState state() override;
  int culprit() const override { return launched_; }

 private:
  // An adversarial input.
  struct Check {
    ProblemData data;
    DeviceProblem problem;
    std::vector<HostValue> reference;  // computed at the first validation
  };

  // One run on it, compared with the reference.
  Result<Agreement> agreement(int number, Check& check);
  // Grows what all candidates share, one after the other, to what this one needs.
  Status make_workspace(const Launcher& launcher);

  DeviceBench(CudaDriverPtr driver, OpSpecPtr spec, Direction direction, const DeviceSpec& device, ContextGuard guard,
              DeviceTimer timer, std::vector<Check> checks, DeviceProblem timed)
      : guard_(std::move(guard)),
        driver_(std::move(driver)),
        spec_(std::move(spec)),
        direction_(direction),
        device_(device),
        timer_(std::move(timer)),
        checks_(std::move(checks)),
        timed_(std::move(timed)) {}

  ContextGuard guard_;  // first, so that it is left last
  CudaDriverPtr driver_;
  OpSpecPtr spec_;
  Direction direction_;
  DeviceSpec device_;
  DeviceTimer timer_;
  std::vector<Check> checks_;
  DeviceProblem timed_;
  DeviceBuffer workspace_;  // empty until a candidate asks for one
  std::map<int, LauncherPtr> launchers_;
  int next_ = 0;
  int launched_ = 0;  // by time(), last
};

}  // namespace hstujit
