// EngineStats: what an engine has done since it was made, as JSON and as a page of Prometheus' text format.
//
// Any thread may count and read at any time. Counting takes no lock: a launch has its kernel's counter at hand.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "compiler/support/json.h"

namespace hstujit {

// How often something was done, and how long it took.
class TimedCount {
 public:
  // `work` returns a Status or a Result.
  template <class Work>
  auto run(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    auto result = work();
    const auto took = std::chrono::steady_clock::now() - start;
    nanoseconds_ += std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
    ++(result.ok() ? done_ : failed_);
    return result;
  }

  int64_t done() const { return done_; }
  int64_t failed() const { return failed_; }
  double milliseconds() const { return static_cast<double>(nanoseconds_) * 1e-6; }

 private:
  std::atomic<int64_t> done_{0}, failed_{0}, nanoseconds_{0};
};

// Where calls found their kernels, once for each key that an op prepares; and all compiles.
struct LookUpCounts {
  std::atomic<int64_t> memory{0}, directory{0}, nowhere{0};
  TimedCount compiles;
};

class EngineStats {
 public:
  using Counter = std::shared_ptr<std::atomic<int64_t>>;

  TimedCount tunings;  // because of a miss

  // Counts launches of the kernel with this key: one counter for all who ask.
  Counter launches(const std::string& op, const std::string& kernel, const std::string& key);

  // docs/reports.md, "stats". `modules`: how many are loaded.
  Json to_json(const LookUpCounts& look_ups, size_t modules) const;
  std::string to_prometheus(const LookUpCounts& look_ups, size_t modules) const;

 private:
  struct Launched {
    std::string op, kernel;
    Counter count;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Launched> launches_;  // by key
};

}  // namespace hstujit
