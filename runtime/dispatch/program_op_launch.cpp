#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>

#include "runtime/dispatch/program_op.h"
#include "runtime/launch/data_checks.h"

namespace hstujit {

namespace {

// A tensor with room for its shape.
struct Tensor {
  DLTensor tensor;
  std::array<int64_t, kMaxRank> shape, strides;
};

// One between steps: a dense matrix.
struct Temporary {
  DLTensor tensor;
  std::array<int64_t, 2> shape;
};

// The part of `whole` that a step's argument is: one of those that it stacks, and of that the columns of its rows, in
// the shape that the argument has behind its rows, or elements of a vector.
void view_part(const DLTensor& whole, const Argument& argument, const ProgramOperand& operand, Tensor& view) {
  const int stacked = operand.index >= 0 ? 1 : 0;  // axes of `whole` that the view lacks
  int64_t first = operand.first_column;
  if (stacked == 1) first += operand.index * tensor_stride(whole, 0);
  view.tensor = whole;
  view.tensor.byte_offset += static_cast<uint64_t>(first) * size_of(argument.dtype);
  view.tensor.ndim = static_cast<int32_t>(argument.shape.size());
  view.tensor.shape = view.shape.data();
  view.tensor.strides = view.strides.data();
  int64_t dense = 1;
  for (int d = view.tensor.ndim; d-- > 0;) {
    const auto at = static_cast<size_t>(d);
    const bool inside = operand.columns && (d > 0 || view.tensor.ndim == 1);
    view.shape[at] = inside ? argument.shape[at].bias : whole.shape[d + stacked];
    view.strides[at] = inside ? dense : tensor_stride(whole, d + stacked);
    dense *= view.shape[at];
  }
}

// The memory of a dense tensor as a workspace. How much that is follows from its sizes alone, wherever it begins.
Workspace workspace_in(const DLTensor& tensor) {
  constexpr uintptr_t kAlignment = Workspace::kAlignment;
  int64_t elements = 1;
  for (int d = tensor.ndim; d-- > 0; elements *= tensor.shape[d]) {
    if (tensor.shape[d] > 1 && tensor_stride(tensor, d) != elements) return {};
  }
  const auto bytes = static_cast<size_t>(elements) * (tensor.dtype.bits / 8);
  if (bytes < kAlignment) return {};
  const uintptr_t begin = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  return {reinterpret_cast<std::byte*>((begin + kAlignment - 1) / kAlignment * kAlignment), bytes - (kAlignment - 1)};
}

}  // namespace

struct ProgramOp::Values {
  std::array<hstujit_value, kMaxValues> all;  // the program's arguments, then its temporaries
  std::array<Temporary, kMaxValues> temporaries;
  ProgramLayout::Slots slots;

  // Values of one step at a time.
  std::array<hstujit_value, kMaxValuesOfStep> step;
  std::array<Tensor, kMaxValuesOfStep> views;

  // `memory`: of the slots, null before it is known.
  void place_temporaries(const ProgramLayout& layout, size_t count, std::byte* memory) {
    for (size_t t = 0; t < count; ++t) temporaries[t].tensor.data = memory + slots.starts[layout.slot_of_temporary(t)];
  }

  // Where a step's workspace may lie besides the steps' slot: as much as nothing where there is no such value.
  Workspace place_in_value(const ProgramStep& step) const {
    if (step.workspace_in == ProgramStep::kOwnWorkspace) return {};
    return workspace_in(*all[static_cast<size_t>(step.workspace_in)].tensor);
  }

  void take_step(const ProgramStep& program_step, const Signature& signature) {
    for (size_t i = 0; i < signature.size(); ++i) {
      const ProgramOperand& operand = program_step.operands[i];
      if (operand.is_number()) {
        step[i] = {};
        step[i].real = operand.number;
        continue;
      }
      step[i] = all[static_cast<size_t>(operand.value)];
      if (signature[i].kind == ArgumentKind::kInt) {
        step[i].integer =
            static_cast<int64_t>(static_cast<uint64_t>(step[i].integer) + static_cast<uint64_t>(operand.number));
        continue;
      }
      if (operand.is_whole()) continue;
      view_part(*step[i].tensor, signature[i], operand, views[i]);
      step[i].tensor = &views[i].tensor;
    }
  }
};

Status ProgramOp::arrange(const hstujit_value* values, size_t count, Values& all) const {
  if (values == nullptr || count != signature_.size()) return wrong_count(values, count);
  Placement placement{options_.backend == Backend::kCuda, 0};
  if (placement.on_device) {
    const CudaDriver* const driver = driver_.load(std::memory_order_acquire);
    if (driver == nullptr) return not_prepared(max_seq_len_argument_ < 0 ? 1 : values[max_seq_len_argument_].integer);
    HSTUJIT_RETURN_IF_ERROR(current_context_of(*driver).status());
    HSTUJIT_CUDA_CHECK(*driver, context_get_device(&placement.ordinal));
  }
  bool nothing_to_write = false;
  const ArgumentFailure failure = checker_.check(values, count, placement, &nothing_to_write);
  if (!failure.none()) return checker_.explain(failure, values, placement);

  std::copy_n(values, count, all.all.begin());
  for (size_t t = 0; t < program_.temporaries.size(); ++t) {
    const Argument& argument = program_.temporaries[t];
    const DLTensor& counted = *values[rows_[t].argument].tensor;
    Temporary& own = all.temporaries[t];
    own.tensor = counted;
    own.tensor.dtype = dlpack_type(argument.dtype);
    own.tensor.byte_offset = 0;
    own.tensor.ndim = static_cast<int32_t>(argument.shape.size());
    own.tensor.shape = own.shape.data();
    own.tensor.strides = nullptr;
    own.shape[0] = counted.shape[rows_[t].dimension];
    own.shape[1] = argument.shape[1].bias;
    all.all[count + t].tensor = &own.tensor;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(own.shape[0], own.shape[1] * static_cast<int64_t>(size_of(argument.dtype)), &bytes) ||
        bytes > std::numeric_limits<int64_t>::max() / static_cast<int64_t>(2 * ProgramLayout::kMaxSlots)) {
      return Status(Code::kInvalidArgument,
                    fmt::format("{} has {} rows; with so many, {} has more bytes than there can be",
                                signature_[rows_[t].argument].name, own.shape[0], argument.name));
    }
    int64_t& slot = all.slots.bytes[layout_.slot_of_temporary(t)];
    slot = std::max(slot, bytes);
  }
  // Sizes alone decide about the steps' workspaces, wherever the temporaries will lie: here at addresses that no tensor
  // has.
  constexpr uintptr_t kNowhere = uintptr_t{1} << 62;
  layout_.place(all.slots);
  all.place_temporaries(layout_, program_.temporaries.size(), reinterpret_cast<std::byte*>(kNowhere));
  for (size_t s = 0; s < steps_.size(); ++s) {
    all.take_step(program_.steps[s], steps_[s]->signature());
    const Result<size_t> bytes = steps_[s]->workspace_size(all.step.data(), program_.steps[s].operands.size());
    if (!bytes.ok()) return bytes.status().with_context(std::string(spec().op()));
    if (*bytes <= all.place_in_value(program_.steps[s]).bytes) continue;
    int64_t& slot = all.slots.bytes[layout_.slot_of_steps()];
    slot = std::max(slot, static_cast<int64_t>(*bytes));
  }
  layout_.place(all.slots);
  return {};
}

Status ProgramOp::run(Values& all, std::byte* memory, cuda::Stream stream) const {
  all.place_temporaries(layout_, program_.temporaries.size(), memory);
  const size_t slot = layout_.slot_of_steps();
  const Workspace own{memory + all.slots.starts[slot], static_cast<size_t>(all.slots.bytes[slot])};
  for (size_t s = 0; s < steps_.size(); ++s) {
    all.take_step(program_.steps[s], steps_[s]->signature());
    // The larger one has the room: where the value has too little, the slot is as large as it must be.
    const Workspace elsewhere = all.place_in_value(program_.steps[s]);
    const Workspace& place = elsewhere.bytes > own.bytes ? elsewhere : own;
    const Status status = steps_[s]->launch(all.step.data(), program_.steps[s].operands.size(), stream, place);
    if (!status.ok()) return status.with_context(std::string(spec().op()));
  }
  return {};
}

Status ProgramOp::launch(const hstujit_value* values, size_t count, cuda::Stream stream,
                         const Workspace& workspace) const {
  Values all;
  HSTUJIT_RETURN_IF_ERROR(arrange(values, count, all));
  if (options_.backend == Backend::kCuda) {
    HSTUJIT_RETURN_IF_ERROR(check_workspace(workspace, all.slots.total, spec().op()));
    if (engine_->check()) {
      const CudaDriver* const driver = driver_.load(std::memory_order_acquire);
      HSTUJIT_RETURN_IF_ERROR(check_launch_data(driver, signature_, values, stream));
    }
    return run(all, static_cast<std::byte*>(workspace.address), stream);
  }
  HSTUJIT_RETURN_IF_ERROR(check_launch_data(nullptr, signature_, values, nullptr));
  constexpr std::align_val_t kAligned{Workspace::kAlignment};
  const auto free = [](std::byte* memory) { operator delete(memory, kAligned, std::nothrow); };
  const std::unique_ptr<std::byte, decltype(free)> memory(
      static_cast<std::byte*>(operator new(static_cast<size_t>(all.slots.total), kAligned, std::nothrow)), free);
  if (memory == nullptr) {
    return Status(Code::kOutOfMemory, fmt::format("{} needs {} bytes for what its steps leave to each other",
                                                  spec().op(), all.slots.total));
  }
  return run(all, memory.get(), stream);
}

Result<size_t> ProgramOp::workspace_size(const hstujit_value* values, size_t count) const {
  Values all;
  HSTUJIT_RETURN_IF_ERROR(arrange(values, count, all));
  return options_.backend == Backend::kHost ? size_t{0} : static_cast<size_t>(all.slots.total);
}

}  // namespace hstujit
