// ProgramOp: an op whose operator is a program of others (compiler/spec/program.h).
//
// Each step is an op of its own, with the keys of its operator used alone. prepare() has their kernels compiled side by
// side (program_op.cpp); launch() gives each step its values and lets it go, on one stream (program_op_launch.cpp).
// Temporaries lie in the caller's workspace; the host backend allocates them.
#pragma once

#include <memory>
#include <vector>

#include "runtime/dispatch/kernel_op.h"
#include "runtime/launch/program_layout.h"

namespace hstujit {

// Between the name of a program's instance and of one of its steps. No instance has it in its name.
inline constexpr char kOfStep = '/';

// The instance of a program's step: its operator, and all else as the program's instance has it.
Instance step_instance(const Instance& program, const ProgramStep& step);

class ProgramOp final : public Op {
 public:
  // Limits of what a launch keeps on the stack.
  static constexpr size_t kMaxValues = 384;       // arguments and temporaries
  static constexpr size_t kMaxValuesOfStep = 64;  // arguments of one

  // kUnsupported for a program that launches have no room for.
  static Result<std::unique_ptr<ProgramOp>> create(EnginePtr engine, OpOptions options);

  Status launch(const hstujit_value* values, size_t count, cuda::Stream stream,
                const Workspace& workspace = {}) const override;
  Result<size_t> workspace_size(const hstujit_value* values, size_t count) const override;

 private:
  struct Values;  // of one launch
  // Which size of which argument a temporary's rows are.
  struct RowsOf {
    size_t argument = 0;
    int dimension = 0;
  };

  ProgramOp(EnginePtr engine, OpOptions options, ArgumentChecker checker)
      : Op(std::move(engine), std::move(options), std::move(checker)),
        program_(*options_.instance.spec->program(options_.direction)),
        layout_(program_) {}

  Status find_rows();
  Status prepare_host(int64_t max_seq_len) override;
  Status prepare_cuda(int64_t max_seq_len, int device) override;
  void compile(const DeviceContext& context, const DeviceSpec& device, int64_t max_seq_len) override;
  // KernelOp::begin of all steps, the last of which this thread compiles.
  std::vector<KernelOp::Pending> begin(const DeviceContext& context, const DeviceSpec& device, int64_t max_seq_len);

  // Checks the values and lays out the workspace; the tensors between steps have no memory yet.
  Status arrange(const hstujit_value* values, size_t count, Values& all) const;
  Status run(Values& all, std::byte* memory, cuda::Stream stream) const;

  const Program& program_;  // the spec's, which options_ keep
  ProgramLayout layout_;
  std::vector<std::unique_ptr<KernelOp>> ops_;  // those of steps with the same kernels are one
  std::vector<const KernelOp*> steps_;          // by step
  std::vector<RowsOf> rows_;                    // by temporary
};

}  // namespace hstujit
