// Why a choice is what it is, in one sentence: for explain and the log.
#pragma once

#include <string>

#include "runtime/dispatch/kernel_choice.h"

namespace hstujit {

std::string winner_why(const TuningRecord& record);

// The sentence of a choice by the cost model.
std::string heuristic_why(const DeviceSpec& device, const KernelChoice& choice);

// The sentence of a choice that a bundle has, or that an earlier look-up noted, by what it came from there.
std::string earlier_why(const DeviceSpec& device, const KernelChoice& choice);

}  // namespace hstujit
