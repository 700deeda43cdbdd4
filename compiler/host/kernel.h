// One operator instance compiled for the host, and its launches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/host/arguments.h"
#include "compiler/host/jit.h"
#include "compiler/host/operator.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

class JitKernel {
 public:
  // `threads` 0: all that this process may use. `objects`: machine code that an earlier process has kept. `tile`
  // replaces the choice made for this processor: code for narrower registers runs on wider ones too.
  static Result<JitKernel> create(OpSpecPtr spec, Direction direction, int threads, const KeptFiles& objects,
                                  std::optional<RegisterTile> tile = std::nullopt);

  // The same of `module`, IR that the operator's builder might have given: no pass has run, its context is one of
  // prepare_context(). It is lowered in place.
  static Result<JitKernel> create(mlir::ModuleOp module, OpSpecPtr spec, Direction direction, int threads,
                                  const KeptFiles& objects, std::optional<RegisterTile> tile = std::nullopt);

  // Runs to completion. Several threads may launch at once.
  Status launch(const HstujitHostValue* values, size_t count) const;

 private:
  JitKernel(Signature signature, HostOperatorPtr op, JitFunction function, int64_t scratch_size, int threads)
      : signature_(std::move(signature)),
        operator_(std::move(op)),
        function_(std::move(function)),
        scratch_size_(scratch_size),
        threads_(threads) {}

  Signature signature_;
  HostOperatorPtr operator_;
  JitFunction function_;
  int64_t scratch_size_;  // fp32 values per thread
  int threads_;
};

}  // namespace hstujit
