// Runs independent work on several threads, the most expensive first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace hstujit {

// Processors that this process may use.
int available_threads();

// As many of them as get `least` of `work` each, so that none is started for less than its start costs; at least one.
int threads_for(int64_t work, int64_t least);

// Calls body(worker, i) once for every i in [0, count), each on the next free thread, in increasing order of their
// start. The calling thread is worker 0. Where the system refuses a thread, fewer do the work. What `body` throws, for
// want of memory, ends all of it: the first exception comes out of the call.
void parallel_for(size_t count, int threads, const std::function<void(int worker, size_t i)>& body);

// Calls body(begin, end) for each block of so many of [0, count), but for the last one, which may have fewer. Blocks
// are the same whatever the threads.
void parallel_blocks(size_t count, size_t block, const std::function<void(size_t begin, size_t end)>& body);

}  // namespace hstujit
