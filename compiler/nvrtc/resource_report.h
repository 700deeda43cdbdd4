// Resources that a compiled kernel uses, read from the assembler's log and from the cubin itself, and why it must not
// be used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/status.h"

namespace hstujit {

struct Resources {
  int64_t registers = 0;              // per thread
  int64_t spill_store_bytes = 0;      // per thread; known from the log only
  int64_t spill_load_bytes = 0;       // per thread; known from the log only
  int64_t stack_bytes = 0;            // per thread, spills included
  int64_t static_shared_bytes = 0;    // per block
  std::vector<std::string> warnings;  // the compiler's and the assembler's warnings, each one line

  bool operator==(const Resources&) const = default;
};

// A kernel that compiled but that the tuner must not choose. `reason` is a short stable name:
//   "spill"               registers spilled to local memory
//   "setmaxnreg_ignored"  C7504, C7508: the warpgroups do not redistribute registers
//   "wgmma_serialized"    C7512, C7520 and relatives: the matrix instructions wait for one another
//   "wgmma_wait_injected" C7514, C7517 and relatives: the assembler added waits that the source does not have
//   "assembler_advisory"  any other C75xx message
struct KernelReject {
  std::string reason;
  std::string detail;  // the sentence with the figures, or the assembler's message

  bool operator==(const KernelReject&) const = default;
};

// The resources of `entry` as the log of -Xptxas=-v tells them. kNotFound when the log does not mention the kernel;
// warnings of the whole log are collected either way by log_warnings().
Result<Resources> resources_from_log(std::string_view log, std::string_view entry);

// Lines of the log that are warnings or assembler advisories, without duplicates, in order.
std::vector<std::string> log_warnings(std::string_view log);

// The same from the cubin: registers and stack from .nv.info, shared memory from the kernel's .nv.shared section.
// kNotFound when the cubin defines no kernel `entry`; kCompileFailed when the bytes are no cubin.
Result<Resources> resources_from_cubin(std::string_view cubin, std::string_view entry);

// Merges both reports: the log's figures where it has them, else the cubin's. Of several kernels each figure is that of
// the worst. The cubin must define all `entries`: kCompileFailed, with the kernels that it does define, otherwise.
Result<Resources> merged_resources(std::string_view cubin, std::string_view log,
                                   const std::vector<std::string>& entries);

// Why a kernel with these resources and this log is not to be used; empty for a good one.
std::vector<KernelReject> reject_reasons(const Resources& resources, std::string_view log);

}  // namespace hstujit
