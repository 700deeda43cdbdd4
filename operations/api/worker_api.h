// The boundary between libhstujit_operations.so and its worker program, which is of the same build and has nothing but
// this call.
#pragma once

#pragma GCC visibility push(default)  // all else in the library is hidden
extern "C" {
// Answers the tuner at the other end of a stream socket until that hangs up, then ends the process.
[[noreturn]] void hstujit_worker_serve(int socket);
}
#pragma GCC visibility pop
