// The kernel of a choice, from the caches or the compiler; where the cost model made the choice, a kernel without
// fault.
//
// The cost model does not know how many registers a compile takes. An estimate whose kernel spills, or whose matrix
// products the assembler serialises, or that the compiler refuses, is passed over for the next one, a few times. The
// choice that comes of it is noted, so that the next process needs neither compile.
#pragma once

#include "runtime/dispatch/kernel_choice.h"

namespace hstujit {

enum class Supply {
  kMake,     // compiles what is missing where the policy on a miss allows it, keeps it, and notes the choice
  kCompile,  // the same, whatever the policy
  kLook,     // compiles and writes nothing
};

struct SuppliedKernel {
  KernelChoice choice;  // that was asked for, or by the cost model's next estimate
  CompileRequest request;
  KernelBinaryPtr binary;  // null, of kLook only: `request` is what kMake would miss
  bool hit = false;        // nothing was compiled for it
};

// The choice is one of choose_kernel for the same key.
Result<SuppliedKernel> supply_kernel(Engine& engine, const OpSpecPtr& spec, Direction direction,
                                     const DeviceSpec& device, const ProblemBucket& bucket,
                                     const Restriction& restriction, KernelChoice choice, Supply supply);

}  // namespace hstujit
