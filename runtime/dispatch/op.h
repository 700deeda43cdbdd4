// Op: one operator instance and direction in one engine, with what was prepared for it.
//
// The operator has kernels of its own (kernel_op.h), or is a program of others (program_op.h). prepare() may take its
// time; launch() waits for no lock, allocates nothing and never synchronises.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "compiler/spec/config.h"
#include "runtime/dispatch/kernel_choice.h"
#include "runtime/dispatch/problem_bucket.h"
#include "runtime/engine/engine.h"
#include "runtime/launch/arguments.h"
#include "runtime/launch/workspace.h"

namespace hstujit {

enum class Backend { kCuda, kHost };

struct OpOptions {
  Instance instance;  // its lengths are for tuning on a miss only
  Direction direction = Direction::kForward;
  Backend backend = Backend::kCuda;
  LengthMode length_mode = LengthMode::kPow2;
  std::vector<int64_t> listed;  // lengths of LengthMode::kStatic
  Restriction restriction = {};
};

class Op {
 public:
  // kUnsupported when the operator has no such direction, or a signature that launches have no room for.
  static Result<std::unique_ptr<Op>> create(EnginePtr engine, OpOptions options);
  virtual ~Op() = default;

  const OpSpec& spec() const { return *options_.instance.spec; }
  Direction direction() const { return options_.direction; }
  const Signature& signature() const { return signature_; }

  // Makes the kernels of max_seq_len's bucket ready in the current context, or in that of `device` when >= 0. Those of
  // the backward direction are compiled meanwhile where `derivative_follows`; a failure is told to whoever prepares
  // them.
  Status prepare(int64_t max_seq_len, int device, bool derivative_follows = false);

  // `workspace` as Launcher::launch has it; the host backend needs none.
  virtual Status launch(const hstujit_value* values, size_t count, cuda::Stream stream,
                        const Workspace& workspace = {}) const = 0;

  // Bytes of device memory that launch() needs beside these values. They follow from the kernels, which must be
  // prepared as for a launch: kNotPrepared. Where a kernel needs none, no value is looked at but those that choose it.
  virtual Result<size_t> workspace_size(const hstujit_value* values, size_t count) const = 0;

 protected:
  Op(EnginePtr engine, OpOptions options, ArgumentChecker checker);

  int64_t bucket_of(int64_t max_seq_len) const {
    return problem_bucket(signature_, options_.length_mode, max_seq_len, options_.listed);
  }
  // Failures of launches.
  Status not_prepared(int64_t max_seq_len) const;
  Status wrong_count(const hstujit_value* values, size_t count) const;
  // The context that a launch runs in.
  Result<cuda::Context> current_context_of(const CudaDriver& driver) const;

  virtual Status prepare_host(int64_t max_seq_len) = 0;
  virtual Status prepare_cuda(int64_t max_seq_len, int device) = 0;
  // Compiles the kernels of max_seq_len's bucket for the device of `context`, which need not be current.
  virtual void compile(const DeviceContext& context, const DeviceSpec& device, int64_t max_seq_len) = 0;

  EnginePtr engine_;
  OpOptions options_;
  Signature signature_;
  ArgumentChecker checker_;
  int max_seq_len_argument_ = -1;                   // -1: the operator has no sequences, and one bucket
  std::atomic<const CudaDriver*> driver_{nullptr};  // the engine's, for launches; null before the first prepare()

 private:
  Status compile_derivative(int64_t max_seq_len, int device);

  std::mutex derivatives_mutex_;
  std::vector<std::future<void>> derivatives_;  // that are compiled, or were
};

}  // namespace hstujit
