// Functions that parts of the emulation call of one another, and kernels do not.
#pragma once

#include <cstddef>

namespace emulation {

// Suspends the thread for so many turns of the others.
void pause_for(unsigned turns);

// Bytes of its block's shared memory that the thread that runs may use.
size_t own_bytes();

}  // namespace emulation
