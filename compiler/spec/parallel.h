// A plain parallel loop for the references, which are slow and embarrassingly parallel.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace hstujit {

// Calls body(index) for each index below `count`, on every core; returns when all are done. `body` must not throw.
template <typename Body>
void parallel_for(size_t count, const Body& body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t index = next++; index < count; index = next++) body(index);
  };
  const size_t workers = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> threads;
  for (size_t worker = 1; worker < workers; ++worker) threads.emplace_back(work);
  work();
}

}  // namespace hstujit
