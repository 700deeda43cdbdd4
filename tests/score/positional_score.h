// A score that depends on everything a score may depend on, as no built-in one does: its IR, its formula, and attention
// with it in float64.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/emit/source.h"
#include "compiler/ir/attention.h"
#include "tests/host/host_call.h"

namespace hstujit {

// tanh(alpha * x + shift) * weight. Neighbours differ in the weight, whatever argument it is that is off by one.
struct PositionalScore {
  int64_t row, col, n, t, head;

  double weight() const { return static_cast<double>((row + 3 * col + 5 * n) % 7 - 3); }
  double shift() const { return 0.25 * static_cast<double>(t % 4 - 2 * head); }
  double value(double alpha, double x) const;
  double derivative(double alpha, double x) const;  // with respect to x
};

mlir::Value build_positional_score(Ops& ops, const ScoreArguments& arguments);

// IR of an attention operator with that score.
Module positional_module(mlir::MLIRContext& context, const OpSpec& spec);
Result<EmittedKernel> emit_positional(const OpSpec& spec, Direction direction, const KernelConfig& config,
                                      const DeviceSpec& device);

// After a launch of `call`: a sentence for each output that is not near what float64 gives.
std::string positional_mistakes(HostCall& call, const OpSpec& spec, Direction direction);

}  // namespace hstujit
