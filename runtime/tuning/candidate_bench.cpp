#include "runtime/tuning/candidate_bench.h"

#include <algorithm>

namespace hstujit {

namespace {

// Linear interpolation between the sorted samples.
double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

TimeSummary summarise(std::vector<double> samples) {
  TimeSummary summary;
  summary.samples = static_cast<int>(samples.size());
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  summary.median_ms = quantile(samples, 0.5);
  if (summary.median_ms > 0) {
    summary.spread = (quantile(samples, 0.75) - quantile(samples, 0.25)) / 2 / summary.median_ms;
  }
  return summary;
}

}  // namespace hstujit
