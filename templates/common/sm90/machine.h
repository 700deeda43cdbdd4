// Resources of a multiprocessor of sm_90, and how the CTAs of a Hopper kernel share it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/spec/device_spec.h"
#include "compiler/support/integers.h"

namespace hstujit::sm90 {

inline constexpr int64_t kSwizzleBytes = 128;
inline constexpr int64_t kTileColumns = 64;      // 16-bit elements in kSwizzleBytes
inline constexpr int64_t kSharedLimit = 233472;  // bytes of shared memory of a multiprocessor
inline constexpr int64_t kRegisterFile = 65536;  // 32-bit registers
inline constexpr int64_t kMaxRegisters = 240;    // of a thread: leaves the compiler's reserve below the 255 there are

// Rows of a box of the tensor maps for what lies at a sequence's end. The templates have it, too, and compare.
inline constexpr int64_t kTailBoxRows = 16;

// Shared memory of `blocks` CTAs with `bytes` each.
inline int64_t resident_bytes(int64_t bytes, int64_t blocks) { return (bytes + kReservedSharedMemory) * blocks; }

// Registers of each thread at launch, when the file is shared out evenly. Warps are dealt out to the four partitions,
// each of which has a quarter of the file.
inline int64_t even_registers(int64_t threads, int64_t blocks) {
  const int64_t partition_warps = ceil_div(threads / 32 * blocks, int64_t{4});
  return std::min(kMaxRegisters, kRegisterFile / (4 * 32 * partition_warps) / 8 * 8);
}

// Registers that setmaxnreg can give the threads of each consumer warpgroup where those of `producers` warpgroups keep
// `producer` of `even` registers.
inline int64_t consumer_share(int64_t even, int64_t consumers, int64_t producer, int64_t producers = 1) {
  return std::min(kMaxRegisters, (even * (consumers + producers) - producer * producers) / consumers / 8 * 8);
}

}  // namespace hstujit::sm90
