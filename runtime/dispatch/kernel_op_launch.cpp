#include <fmt/format.h>

#include <limits>

#include "runtime/dispatch/kernel_op.h"
#include "runtime/launch/data_checks.h"

namespace hstujit {

Result<const Launcher*> KernelOp::find_launcher(const hstujit_value* values, size_t count) const {
  if (values == nullptr || count != signature_.size()) {
    return wrong_count(values, count);
  }
  int64_t max_seq_len = 1;
  if (max_seq_len_argument_ >= 0) {
    max_seq_len = values[max_seq_len_argument_].integer;
    const bool too_large = max_seq_len > signature_[max_seq_len_argument_].max;
    if (max_seq_len < 0 || too_large) {
      const auto kind = too_large ? ArgumentFailure::Kind::kIntegerTooLarge : ArgumentFailure::Kind::kNegativeInteger;
      return checker_.explain({kind, max_seq_len_argument_, 0, max_seq_len}, values, {});
    }
  }
  const CudaDriver* const driver = driver_.load(std::memory_order_acquire);
  if (driver == nullptr) return not_prepared(max_seq_len);
  HSTUJIT_ASSIGN_OR_RETURN(const cuda::Context context, current_context_of(*driver));
  unsigned long long context_id = 0;
  if (const cuda::Error error = context_identity(*driver, context, &context_id); error != cuda::kSuccess) {
    return driver->failure(error, "cuCtxGetId", __FILE__, __LINE__);
  }
  const Prepared* const prepared = table_.find(context_id, bucket_of(max_seq_len));
  if (prepared == nullptr) return not_prepared(max_seq_len);
  return prepared->launcher_of(class_of(prepared->classes, values)).get();
}

Status KernelOp::launch(const hstujit_value* values, size_t count, cuda::Stream stream,
                        const Workspace& workspace) const {
  if (options_.backend == Backend::kHost) return launch_host(values, count);
  HSTUJIT_ASSIGN_OR_RETURN(const Launcher* const launcher, find_launcher(values, count));
  if (engine_->check()) {
    const Placement placement{true, launcher->module().device().ordinal};
    bool nothing = false;
    const ArgumentFailure failure = checker_.check(values, count, placement, &nothing);
    if (!failure.none()) return checker_.explain(failure, values, placement);
    HSTUJIT_RETURN_IF_ERROR(check_launch_data(driver_.load(std::memory_order_acquire), signature_, values, stream));
  }
  return launcher->launch(values, count, stream, workspace);
}

// Before the values are checked: whoever has none, or a wrong tensor, is told so by any launcher.
BatchClass KernelOp::class_of(const BatchClasses& classes, const hstujit_value* values) const {
  constexpr int64_t kMany = std::numeric_limits<int64_t>::max();
  if (classes.max_small == 0 && !classes.short_sequences) return BatchClass::kAny;
  const auto size_of = [&](int argument) {
    const DLTensor* const tensor = argument >= 0 ? values[argument].tensor : nullptr;
    return tensor == nullptr || tensor->ndim < 1 || tensor->shape == nullptr ? kMany : tensor->shape[0];
  };
  const int64_t offsets = size_of(offsets_argument_), rows = size_of(rows_argument_);
  return offsets == kMany ? BatchClass::kAny : classes.of(offsets - 1, rows);
}

// Returns any length for a launch without one.
int64_t KernelOp::max_seq_len_of(const hstujit_value* values) const {
  return max_seq_len_argument_ >= 0 ? values[max_seq_len_argument_].integer : 1;
}

Status KernelOp::launch_host(const hstujit_value* values, size_t count) const {
  const Placement placement{false, 0};
  bool nothing_to_write = false;
  const ArgumentFailure failure = checker_.check(values, count, placement, &nothing_to_write);
  if (!failure.none()) return checker_.explain(failure, values, placement);
  const int64_t max_seq_len = max_seq_len_of(values);
  if (table_.find(kHostContext, bucket_of(max_seq_len)) == nullptr) return not_prepared(max_seq_len);
  // The host backend reads offsets on the way to its loops, so a wrong one would be an access out of bounds. One that
  // ends up in no row is a mistake all the same: the next launch has rows.
  HSTUJIT_RETURN_IF_ERROR(check_launch_data(nullptr, signature_, values, nullptr));
  if (nothing_to_write) return {};
  const HostKernel* const kernel = host_.load(std::memory_order_acquire);
  HSTUJIT_RETURN_IF_ERROR(kernel->launch(signature_, values));
  host_launches_->fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<size_t> KernelOp::workspace_size(const hstujit_value* values, size_t count) const {
  if (options_.backend == Backend::kHost) {
    if (values == nullptr || count != signature_.size()) return wrong_count(values, count);
    const int64_t max_seq_len = max_seq_len_of(values);
    if (table_.find(kHostContext, bucket_of(max_seq_len)) == nullptr) return not_prepared(max_seq_len);
    return size_t{0};
  }
  HSTUJIT_ASSIGN_OR_RETURN(const Launcher* const launcher, find_launcher(values, count));
  return launcher->workspace_size(values, count);
}

}  // namespace hstujit
