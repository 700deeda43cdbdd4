// A family of operators: those that share skeletons, a lowering for the host, configs and a measure of a problem's
// size. Programs (program.h) have kernels of other families only.
#pragma once

#include <string_view>

namespace hstujit {

enum class Family { kAttention, kRow, kScan, kGemm, kProgram };

constexpr std::string_view to_string(Family family) {
  switch (family) {
    case Family::kAttention:
      return "attention";
    case Family::kRow:
      return "row";
    case Family::kScan:
      return "scan";
    case Family::kGemm:
      return "gemm";
    case Family::kProgram:
      return "program";
  }
  return "";
}

}  // namespace hstujit
