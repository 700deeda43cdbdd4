// Single flight: of the threads that want one key at the same time, the first one works and the others wait for its
// answer.
#pragma once

#include <future>
#include <mutex>
#include <string>
#include <unordered_map>

#include "compiler/support/log.h"

namespace hstujit {

// T is copied to every waiter.
template <typename T>
class SingleFlight {
 public:
  // Returns work(), or what the work() under way for `key` returns. No lock is held while it works; an exception
  // reaches every waiter. A call that comes after the answer works anew: `work` looks first whether it still must.
  template <typename Work>
  T run(const std::string& key, const Work& work) {
    std::promise<T> promise;
    std::shared_future<T> flight;
    bool leader = false;
    {
      const std::lock_guard lock(mutex_);
      const auto [place, added] = flights_.try_emplace(key);
      if (added) place->second = promise.get_future().share();
      flight = place->second;
      leader = added;
    }
    if (!leader) return flight.get();
    const DeferredEvents deferred;  // a sink may want the key
    try {
      promise.set_value(work());
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
    {
      const std::lock_guard lock(mutex_);
      flights_.erase(key);
    }
    return flight.get();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_future<T>> flights_;
};

}  // namespace hstujit
