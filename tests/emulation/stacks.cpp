// A file of its own: a compiler that saw a caller would keep values in registers that another stack's functions use.
#include "tests/emulation/stacks.h"

#include <ucontext.h>

namespace emulation {

namespace {

// A function that has a place jumps to no other one.
[[noreturn, gnu::noinline]] void jump_to(Place& place) { __builtin_longjmp(place, 1); }

[[noreturn, gnu::noinline]] void begin(unsigned char* stack, size_t bytes, void (*main)()) {
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = bytes;
  context.uc_link = nullptr;
  makecontext(&context, main, 0);
  setcontext(&context);
  __builtin_unreachable();
}

}  // namespace

void switch_stacks(Place& from, Place& to) {
  if (__builtin_setjmp(from) == 0) jump_to(to);
}

void begin_stack(Place& from, unsigned char* stack, size_t bytes, void (*main)()) {
  if (__builtin_setjmp(from) == 0) begin(stack, bytes, main);
}

}  // namespace emulation
