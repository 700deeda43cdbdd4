// Threads of a system that may have none to give (ulimit -u): fewer do the work then, and nothing fails.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hstujit {

// Runs `body` on a thread of its own; nothing where the system gives none.
template <typename Body>
std::optional<std::jthread> start_thread(Body body) {
  try {
    return std::jthread(std::move(body));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

// Starts body(0), body(1), ... on up to `count` threads, as many as the system gives.
inline std::vector<std::jthread> start_threads(size_t count, const std::function<void(size_t)>& body) {
  std::vector<std::jthread> threads;
  threads.reserve(count);
  while (threads.size() < count) {
    auto thread = start_thread([body, index = threads.size()] { body(index); });
    if (!thread) break;
    threads.push_back(std::move(*thread));
  }
  return threads;
}

// Future of body(), which runs on a thread of its own, or where get() is called when the system gives none.
template <typename Body>
auto start_async(Body body) -> std::future<decltype(body())> {
  try {
    return std::async(std::launch::async, body);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, std::move(body));
  }
}

}  // namespace hstujit
