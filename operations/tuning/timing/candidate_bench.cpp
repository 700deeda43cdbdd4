#include "operations/tuning/timing/candidate_bench.h"

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

std::vector<std::vector<double>> without_drift(std::vector<std::vector<double>> samples) {
  if (samples.size() < 2) return samples;
  std::vector<double> medians;
  size_t repeats = samples[0].size();
  for (const std::vector<double>& of_candidate : samples) {
    medians.push_back(summarise(of_candidate).median_ms);
    repeats = std::min(repeats, of_candidate.size());
    if (!(medians.back() > 0)) return samples;
  }
  for (size_t repeat = 0; repeat < repeats; ++repeat) {
    double common = 0;
    for (size_t i = 0; i < samples.size(); ++i) common += samples[i][repeat] / medians[i];
    common /= static_cast<double>(samples.size());
    for (std::vector<double>& of_candidate : samples) of_candidate[repeat] /= common;
  }
  return samples;
}

}  // namespace hstujit
