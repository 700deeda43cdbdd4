// The processor that the host backend generates code for: this one.
#pragma once

#include <cstdint>
#include <memory>

#include "compiler/support/status.h"
#include "llvm/Target/TargetMachine.h"

namespace hstujit {

// How a matrix product is cut so that its accumulators stay in registers.
struct RegisterTile {
  int64_t lanes = 4;    // fp32 values of one vector register
  int64_t vectors = 2;  // registers across a row of the tile
  int64_t rows = 4;

  int64_t columns() const { return lanes * vectors; }
};

class HostTarget {
 public:
  // Detects the processor. Safe from several threads.
  static Result<HostTarget> detect();

  const RegisterTile& register_tile() const { return tile_; }
  const llvm::TargetMachine& machine() const { return *machine_; }
  llvm::TargetMachine& machine() { return *machine_; }

 private:
  std::unique_ptr<llvm::TargetMachine> machine_;
  RegisterTile tile_;
};

}  // namespace hstujit
