// What the assembler says against a kernel that is right: registers that spill, products that it serialises.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/plan/skeleton.h"

namespace hstujit {

// Of the resources in a cubin's metadata, the first reason; none for a kernel without fault, or of which nothing is
// known.
std::optional<Rejection> resource_rejection(const std::string& resources);

// Bytes of registers that a thread stores to memory and loads from there; 0 where nothing is known.
int64_t spilled_bytes(const std::string& resources);

}  // namespace hstujit
