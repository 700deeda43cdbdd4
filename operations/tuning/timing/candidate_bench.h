// Where candidates run. The tuner sees this interface only: tests give it times without a GPU, and a worker process
// that a bad kernel may kill can stand behind it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/plan/kernel_config.h"
#include "compiler/support/status.h"

namespace hstujit {

// A candidate after compilation: everything that crosses to wherever it runs.
struct CompiledCandidate {
  KernelConfig config;
  std::string cubin;
};

// Whether a bench can run anything after a call that failed. kCrashed: a kernel broke it for good, such as the CUDA
// context, or the process, that it ran in. kTimedOut: a kernel did not end in time. It stays so for the bench's life.
enum class BenchState { kSound, kCrashed, kTimedOut };

class CandidateBench {
 public:
  virtual ~CandidateBench() = default;

  // Loads a candidate and returns its number. Failure rejects this candidate only.
  virtual Result<int> load(const CompiledCandidate& candidate) = 0;
  virtual void unload(int number) = 0;

  // Runs it on adversarial input; kCheckFailed with the sentence when it disagrees with the reference.
  virtual Status validate(int number) = 0;

  // Milliseconds of `repeats` launches of each candidate, by candidate in the order given. Repeats are interleaved, so
  // that a change of the clock meets all of them, and the L2 cache is cold before each launch.
  virtual Result<std::vector<std::vector<double>>> time(const std::vector<int>& numbers, int repeats) = 0;

  // Asked after one of the calls above has failed. When it is not kSound, every further call fails; the bench is
  // destroyed, and the factory is asked for another.
  virtual BenchState state() = 0;

  // Asked after time() has failed: the candidate whose launch did. No launch begins before the one before it has ended.
  virtual int culprit() const = 0;

  // `observer` hears of every launch of time() just before it, so that a culprit is known also when the process ends.
  void observe_launches(std::function<void(int number)> observer) { observer_ = std::move(observer); }

 protected:
  void launching(int number) const {
    if (observer_) observer_(number);
  }

 private:
  std::function<void(int number)> observer_;
};

// Makes the bench of a run, and another one, with no candidate loaded, after each that was lost; never two at a time.
// It may start a process. A failure ends the tuning, and says why no other can be made.
using BenchFactory = std::function<Result<std::unique_ptr<CandidateBench>>()>;

struct TimeSummary {
  double median_ms = 0;
  double spread = 0;  // half the distance between the quartiles, relative to the median
  int samples = 0;
};

TimeSummary summarise(std::vector<double> samples);

// Corrects the samples of one call of time() to what they would be had the clock stood still. A repeat's samples are
// divided by what they have in common, the mean of their ratios to the medians. So what spread is left is what keeps
// the candidates apart. The samples of a single candidate are returned as they are.
std::vector<std::vector<double>> without_drift(std::vector<std::vector<double>> samples);

}  // namespace hstujit
