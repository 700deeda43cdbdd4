// Objections of the assembler to a kernel that is right: registers that spill, products that it serialises.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/plan/skeleton.h"

namespace hstujit {

// Finds the first objection to the resources in a cubin's metadata; none for a kernel without fault, or without known
// resources.
std::optional<Rejection> resource_rejection(const std::string& resources);

// Bytes of registers that a thread stores to memory and loads from there; 0 where nothing is known.
int64_t spilled_bytes(const std::string& resources);

}  // namespace hstujit
