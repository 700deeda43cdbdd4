// Where candidates run. The tuner sees this interface only: tests give it times without a GPU, and a worker process
// that a bad kernel may kill can stand behind it.
#pragma once

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
};

struct TimeSummary {
  double median_ms = 0;
  double spread = 0;  // half the distance between the quartiles, relative to the median
  int samples = 0;
};

TimeSummary summarise(std::vector<double> samples);

}  // namespace hstujit
