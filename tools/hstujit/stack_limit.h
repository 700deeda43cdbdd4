// Whether the stacks that the system gives suffice.
#pragma once

#include "compiler/support/status.h"

namespace hstujit {

// kOutOfMemory where the limit of stacks (ulimit -s) is below what compiles need: a stack that is used up ends the
// process without a word. Threads have stacks of that size, too.
Status check_stack_limit();

}  // namespace hstujit
