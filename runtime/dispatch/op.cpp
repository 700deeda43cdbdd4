#include "runtime/dispatch/op.h"

#include <fmt/format.h>

#include "autotune_cache/store/layers_passed_over.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/threads.h"
#include "runtime/dispatch/kernel_op.h"
#include "runtime/dispatch/program_op.h"
#include "runtime/dispatch/wanted_kernel.h"
#include "runtime/launch/arguments.h"

namespace hstujit {

Op::Op(EnginePtr engine, OpOptions options, ArgumentChecker checker)
    : engine_(std::move(engine)),
      options_(std::move(options)),
      signature_(options_.instance.spec->signature(options_.direction)),
      checker_(std::move(checker)),
      max_seq_len_argument_(find_argument(signature_, Semantic::kMaxRows, kSequenceAxis)) {
  if (max_seq_len_argument_ >= 0) checker_.require_not_negative(max_seq_len_argument_);
}

Result<std::unique_ptr<Op>> Op::create(EnginePtr engine, OpOptions options) {
  const OpSpec& spec = *options.instance.spec;
  if (!spec.supports(options.direction)) {
    return Status(Code::kUnsupported, fmt::format("direction is \"{}\", but {}", to_string(options.direction),
                                                  without_direction(spec, options.direction)));
  }
  std::unique_ptr<Op> op;
  if (spec.program(options.direction) != nullptr) {
    HSTUJIT_ASSIGN_OR_RETURN(op, ProgramOp::create(std::move(engine), std::move(options)));
  } else {
    HSTUJIT_ASSIGN_OR_RETURN(op, KernelOp::create(std::move(engine), std::move(options)));
  }
  return op;
}

Status Op::prepare(int64_t max_seq_len, int device, bool derivative_follows) {
  if (max_seq_len_argument_ >= 0)
    HSTUJIT_RETURN_IF_ERROR(check_max_seq_len(max_seq_len, signature_[max_seq_len_argument_].max));
  if (options_.backend == Backend::kHost) return prepare_host(max_seq_len);
  if (derivative_follows) {
    [[maybe_unused]] const Status told_to_whoever_prepares_it = compile_derivative(max_seq_len, device);
  }
  const Status prepared = prepare_cuda(max_seq_len, device);
  if (prepared.code() != Code::kCacheMiss) return prepared;
  // A user who has named a directory expects that it was looked into.
  return Status(prepared.code(), prepared.message() + passed_over_text(engine_->kernels().store().layers()));
}

Status Op::compile_derivative(int64_t max_seq_len, int device) {
  constexpr Direction kDerivative = Direction::kBackward;
  if (options_.direction == kDerivative || !spec().supports(kDerivative) || !compiles_ahead(*engine_)) return {};
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine_->driver());
  HSTUJIT_ASSIGN_OR_RETURN(const ContextGuard guard, ContextGuard::enter(driver, device));
  const DeviceContext context = guard.device();
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceSpec device_spec, engine_->device(context.ordinal));
  OpOptions options = options_;
  options.direction = kDerivative;
  HSTUJIT_ASSIGN_OR_RETURN(std::shared_ptr<Op> derivative, create(engine_, std::move(options)));
  const std::lock_guard lock(derivatives_mutex_);
  derivatives_.push_back(start_async([=] { derivative->compile(context, device_spec, max_seq_len); }));
  return {};
}

Status Op::not_prepared(int64_t max_seq_len) const {
  const std::string length = has_max_seq_len(spec().signature(options_.direction))
                                 ? fmt::format("for max_seq_len {} (bucket {}) ", max_seq_len, bucket_of(max_seq_len))
                                 : "";
  return Status(Code::kNotPrepared,
                fmt::format("no kernel of {} {} is prepared {}{}; call prepare before launch", spec().op(),
                            to_string(options_.direction), length,
                            options_.backend == Backend::kHost ? "on the host backend" : "in the current context"));
}

Status Op::wrong_count(const hstujit_value* values, size_t count) const {
  return checker_.explain({ArgumentFailure::Kind::kCount, 0, 0, static_cast<int64_t>(count)}, values, {});
}

Result<cuda::Context> Op::current_context_of(const CudaDriver& driver) const {
  cuda::Context context = nullptr;
  HSTUJIT_CUDA_CHECK(driver, context_get_current(&context));
  if (context != nullptr) return context;
  return Status(Code::kNotPrepared,
                fmt::format("no CUDA context is current in the calling thread; a launch of {} {} runs in the current "
                            "one (cudaSetDevice or cuCtxSetCurrent makes it so), where prepare was called",
                            spec().op(), to_string(direction())));
}

}  // namespace hstujit
