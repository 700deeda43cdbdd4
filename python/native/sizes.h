// The sizes of the outputs of a call.
#pragma once

#include <cstdint>
#include <span>

#include "python/native/arguments.h"

namespace hstujit::torch {

// Offsets whose last element was read, -1 of none.
struct Last {
  std::int32_t input = -1;
  std::int64_t value = 0;
};

// Runs a program of interface.h, which gives as many sizes as `sizes` has. False where one of them is below 0, out of
// its bounds, or more than 64 bits.
bool evaluate(std::span<const std::int64_t> program, const Arguments& arguments, std::span<std::int64_t> sizes,
              Last& last);

}  // namespace hstujit::torch
