// Stacks of coroutines. Switching is a few moves, as the compiler sees to registers: swapcontext() makes system calls,
// and the C library's longjmp() looks for what is to be done on the way.
#pragma once

#include <cstddef>

namespace emulation {

// The place where a stack was left.
using Place = void* [5];

// Leaves this stack at `from`, to go on where another one was left. Returns when this one is switched to.
void switch_stacks(Place& from, Place& to);

// Switches to a stack that has nothing on it yet, and calls `main`, which must not return.
void begin_stack(Place& from, unsigned char* stack, size_t bytes, void (*main)());

}  // namespace emulation
