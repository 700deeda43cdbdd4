// Calls that are made already: sizes of their outputs and the op that launches them, asked for by every call of a
// binding.
#include "runtime/capi/call.h"

#include <fmt/format.h>

#include <vector>

#include "runtime/capi/boundary.h"
#include "runtime/launch/arguments.h"
#include "runtime/launch/tensor_memory.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

// Address and strides in bytes, or-ed, but for the stride of the innermost axis and those of axes with one element.
uint64_t alignment_bits(const DLTensor& tensor) {
  auto bits = reinterpret_cast<uint64_t>(tensor_data(tensor));
  for (int axis = 0; axis + 1 < tensor.ndim; ++axis) {
    if (tensor.shape[axis] != 1) bits |= static_cast<uint64_t>(tensor_stride(tensor, axis) * (tensor.dtype.bits / 8));
  }
  return bits;
}

class LaunchInputs : public CallInputs {
 public:
  explicit LaunchInputs(const hstujit_value* values) : values_(values) {}
  int64_t size(int argument, int axis) const override { return values_[argument].tensor->shape[axis]; }
  int64_t number(int argument) const override { return values_[argument].integer; }

 private:
  const hstujit_value* values_;
};

// Fails unless there is a value for each argument, and a tensor of its rank where one is read.
Status check_values(const hstujit_call& call, const hstujit_value* values, size_t count, bool with_outputs) {
  const Signature& signature = call.signature();
  if (values == nullptr || count != signature.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} values are given{}; a launch of {} has {}", count,
                              values == nullptr ? " at a null pointer" : "", call.function.name(), signature.size()));
  }
  for (size_t at = 0; at < count; ++at) {
    const Argument& argument = signature[at];
    if (argument.kind != ArgumentKind::kTensor || (argument.role == ArgumentRole::kOutput && !with_outputs)) continue;
    const DLTensor* tensor = values[at].tensor;
    if (tensor == nullptr || (tensor->shape == nullptr && tensor->ndim > 0))
      return Status(Code::kInvalidArgument,
                    fmt::format("{}{} is a null pointer; it must be {} {}", argument.name, tensor ? ".shape" : "",
                                tensor ? "the sizes" : "a tensor", shape_text(argument)));
    if (tensor->ndim != static_cast<int>(argument.shape.size()))
      return Status(Code::kInvalidArgument, fmt::format("{} has rank {}; it must have rank {}, shape {}", argument.name,
                                                        tensor->ndim, argument.shape.size(), shape_text(argument)));
  }
  return {};
}

// No kernel has an alignment below that of an element.
Status check_elements(const Signature& signature, const hstujit_value* values) {
  for (size_t at = 0; at < signature.size(); ++at) {
    const Argument& argument = signature[at];
    if (argument.kind != ArgumentKind::kTensor || alignment_bits(*values[at].tensor) % size_of(argument.dtype) == 0)
      continue;
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} begins at an address that is no multiple of {} bytes, an element of {}; it must be one",
                    argument.name, size_of(argument.dtype), to_string(argument.dtype)));
  }
  return {};
}

Result<hstujit_op*> op_of(hstujit_call& call, const hstujit_value* values) {
  const Signature& signature = call.signature();
  for (size_t place = 0; place < call.alignments.size(); ++place) {
    const AlignedOp* aligned = call.aligned[place].load(std::memory_order_acquire);
    if (aligned == nullptr) {
      HSTUJIT_ASSIGN_OR_RETURN(aligned, make_aligned_op(call, place));
    }
    bool fits = true;
    for (size_t at = 0; at < signature.size() && fits; ++at)
      fits = aligned->masks[at] == 0 || (alignment_bits(*values[at].tensor) & aligned->masks[at]) == 0;
    // The launch of the last one reports which tensor it does not read.
    if (fits || place + 1 == call.alignments.size()) return aligned->op.get();
    if (place == 0) HSTUJIT_RETURN_IF_ERROR(check_elements(signature, values));
  }
  return Status(Code::kInternal, "a call has no alignments");
}

}  // namespace

extern "C" {

hstujit_status hstujit_call_output_sizes(const hstujit_call* call, const hstujit_value* values, size_t count,
                                         const int64_t* rows, size_t rows_count, int64_t* sizes, size_t capacity) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(call, kCallHandle);
    HSTUJIT_REQUIRE(sizes, "where the sizes go");
    HSTUJIT_RETURN_IF_ERROR(check_values(*call, values, count, false));
    if (rows_count != call->rows.size() || (rows == nullptr && rows_count != 0)) {
      return Status(Code::kInvalidArgument,
                    fmt::format("rows_count is {}; it must be {}, a value for each hstujit_call_rows", rows_count,
                                call->rows.size()));
    }
    if (capacity < call->sizes.count()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("capacity is {}; it must be {} or more", capacity, call->sizes.count()));
    }
    return call->sizes.evaluate(call->signature(), LaunchInputs(values), {rows, rows_count},
                                {sizes, call->sizes.count()});
  });
}

hstujit_status hstujit_call_check(const hstujit_call* call, const hstujit_value* values, size_t count) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(call, kCallHandle);
    HSTUJIT_RETURN_IF_ERROR(check_values(*call, values, count, false));
    const Signature& signature = call->signature();
    const int longest = find_argument(signature, Semantic::kMaxRows, kSequenceAxis);
    if (longest >= 0 && values[longest].integer != kUnknownInteger)
      HSTUJIT_RETURN_IF_ERROR(check_max_seq_len(values[longest].integer, signature[longest].max));
    HSTUJIT_ASSIGN_OR_RETURN(const ArgumentChecker checker, ArgumentChecker::create(signature));
    return checker.explain(checker.check_inputs(values), values, {});
  });
}

hstujit_status hstujit_call_op(hstujit_call* call, const hstujit_value* values, size_t count, hstujit_op** op) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(call, kCallHandle);
    HSTUJIT_REQUIRE(op, "where the op goes");
    HSTUJIT_RETURN_IF_ERROR(check_values(*call, values, count, true));
    HSTUJIT_ASSIGN_OR_RETURN(*op, op_of(*call, values));
    return {};
  });
}

}  // extern "C"
