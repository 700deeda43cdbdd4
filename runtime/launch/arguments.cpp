#include "runtime/launch/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/spec/limits.h"

namespace hstujit {

namespace {

using Kind = ArgumentFailure::Kind;

// That no two elements of an output are one: from the smallest stride to the largest, each must step over all that the
// smaller ones span. Layouts that interleave without meeting are refused with them; nobody makes such.
ArgumentFailure check_apart(int index, const DLTensor& tensor) {
  std::array<bool, kMaxRank> done{};
  int64_t span = 1;  // elements
  for (int round = 0; round < tensor.ndim; ++round) {
    int smallest = -1;
    for (int i = tensor.ndim - 1; i >= 0; --i) {
      if (done[i] || tensor.shape[i] == 1) continue;
      if (smallest < 0 || tensor_stride(tensor, i) < tensor_stride(tensor, smallest)) smallest = i;
    }
    if (smallest < 0) break;
    done[smallest] = true;
    const int64_t stride = tensor_stride(tensor, smallest);
    if (stride < span) return {Kind::kOverlap, index, smallest, stride, span};
    span += (tensor.shape[smallest] - 1) * stride;
  }
  return {};
}

}  // namespace

Status check_max_seq_len(int64_t max_seq_len, int64_t most) {
  if (max_seq_len >= 1 && max_seq_len <= most) return {};
  const std::string allowed = fmt::format("between 1 and {}", most);
  return Status(Code::kInvalidArgument, fmt::format("max_seq_len is {}; it must be {}", max_seq_len, allowed),
                {"max_seq_len", fmt::to_string(max_seq_len), allowed, ""});
}

Result<ArgumentChecker> ArgumentChecker::create(const Signature& signature) {
  ArgumentChecker checker(signature);
  HSTUJIT_RETURN_IF_ERROR(checker.read_signature());
  return checker;
}

Status ArgumentChecker::read_signature() {
  for (const Argument& argument : signature_) {
    Checked checked;
    checked.tensor = argument.kind == ArgumentKind::kTensor;
    checked.integer = argument.kind == ArgumentKind::kInt;
    checked.output = argument.role == ArgumentRole::kOutput;
    checked.not_negative = argument.min >= 0;
    if (checked.output && !argument.in_place.empty()) checked.in_place = find_argument(signature_, argument.in_place);
    if (checked.tensor) {
      const DLDataType type = dlpack_type(argument.dtype);
      checked.code = type.code;
      checked.bits = type.bits;
      checked.alignment = std::max(argument.alignment, static_cast<int>(size_of(argument.dtype)));
    }
    HSTUJIT_RETURN_IF_ERROR(read_shape(argument, checked));
    arguments_.push_back(checked);
  }
  if (const int symbol = find_symbol("B"); symbol < static_cast<int>(symbols_.size())) sequences_ = symbol;
  return read_integer_axes();
}

Status ArgumentChecker::read_shape(const Argument& argument, Checked& checked) {
  if (argument.shape.size() > static_cast<size_t>(kMaxRank)) {
    return Status(Code::kUnsupported,
                  fmt::format("{} has rank {}, shape {}; a tensor may have at most {} dimensions", argument.name,
                              argument.shape.size(), shape_text(argument), kMaxRank));
  }
  checked.rank = static_cast<int>(argument.shape.size());
  for (int i = 0; i < checked.rank; ++i) {
    const Dimension& dimension = argument.shape[i];
    int& symbol = checked.symbols[i];
    symbol = -1;
    if (dimension.follows_integer()) checked.follows_integer |= uint32_t{1} << i;
    if (dimension.is_constant() || dimension.follows_integer()) continue;
    symbol = find_symbol(dimension.symbol);
    if (symbol == static_cast<int>(symbols_.size())) symbols_.push_back(dimension.symbol);
    if (symbols_.size() > static_cast<size_t>(kMaxSymbols)) {
      return Status(Code::kUnsupported,
                    fmt::format("{} has the size {}, symbol number {} of this signature; at most {} are allowed",
                                argument.name, dimension.symbol, symbols_.size(), kMaxSymbols));
    }
  }
  return {};
}

// After all shapes were read: what such an axis refers to may stand behind it.
Status ArgumentChecker::read_integer_axes() {
  for (int index = 0; index < static_cast<int>(signature_.size()); ++index) {
    const Argument& argument = signature_[index];
    for (int i = 0; i < arguments_[index].rank; ++i) {
      const Dimension& dimension = argument.shape[i];
      if (!dimension.follows_integer()) continue;
      const auto refuse = [&](std::string_view why) {
        return Status(Code::kUnsupported,
                      fmt::format("{}.shape[{}] is {}, but {}", argument.name, i, to_string(dimension), why));
      };
      const int integer = find_argument(signature_, dimension.integer);
      if (integer < 0 || !arguments_[integer].integer) {
        return refuse(fmt::format("{} is no integer argument", dimension.integer));
      }
      const int symbol = dimension.is_scalar() ? -1 : find_symbol(dimension.symbol);
      if (symbol == static_cast<int>(symbols_.size())) {
        return refuse(fmt::format("no other axis says what {} is", dimension.symbol));
      }
      require_not_negative(integer);
      integer_axes_.push_back({index, i, symbol, integer});
    }
  }
  return {};
}

int ArgumentChecker::find_symbol(const std::string& symbol) const {
  return static_cast<int>(std::find(symbols_.begin(), symbols_.end(), symbol) - symbols_.begin());
}

ArgumentFailure ArgumentChecker::check(const hstujit_value* values, size_t count, const Placement& placement,
                                       bool* nothing_to_write) const {
  if (count != arguments_.size() || values == nullptr) return {Kind::kCount, 0, 0, static_cast<int64_t>(count)};
  Symbols symbols;
  bool written = false;
  for (int index = 0; index < static_cast<int>(count); ++index) {
    const Checked& expected = arguments_[index];
    if (expected.tensor) {
      bool empty = false;
      const ArgumentFailure failure = check_tensor(index, expected, values[index].tensor, placement, symbols, &empty);
      if (!failure.none()) return failure;
      written = written || (expected.output && !empty);
    } else if (expected.integer) {
      const ArgumentFailure failure = check_integer(index, expected, values[index].integer);
      if (!failure.none()) return failure;
    } else if (!(std::abs(values[index].real) <= std::numeric_limits<float>::max())) {
      return {Kind::kNotFinite, index};
    } else if (!signature_[index].range.contains(values[index].real)) {
      return {Kind::kRealRange, index};
    }
  }
  if (sequences_ >= 0 && symbols.value[sequences_] > kMaxSeqLen)
    return {Kind::kSequences, symbols.bound_by[sequences_], 0, symbols.value[sequences_]};
  if (const ArgumentFailure failure = check_integer_axes(values, symbols, false); !failure.none()) return failure;
  // Sizes of all tensors come first: a tensor of another size has other strides, too.
  for (int index = 0; index < static_cast<int>(count); ++index) {
    if (!arguments_[index].tensor || is_empty(*values[index].tensor)) continue;
    const ArgumentFailure failure = check_memory(index, arguments_[index], *values[index].tensor);
    if (!failure.none()) return failure;
  }
  *nothing_to_write = !written;
  return check_outputs(values);
}

ArgumentFailure ArgumentChecker::check_inputs(const hstujit_value* values) const {
  Symbols symbols;
  for (int index = 0; index < static_cast<int>(arguments_.size()); ++index) {
    const Checked& expected = arguments_[index];
    if (expected.output) continue;
    ArgumentFailure failure;
    if (expected.tensor)
      failure = check_sizes(index, expected, values[index].tensor->shape, true, symbols);
    else if (expected.integer && values[index].integer != kUnknownInteger)
      failure = check_integer(index, expected, values[index].integer);
    if (!failure.none()) return failure;
  }
  if (is_bound(symbols, sequences_) && symbols.value[sequences_] > kMaxSeqLen)
    return {Kind::kSequences, symbols.bound_by[sequences_], 0, symbols.value[sequences_]};
  return check_integer_axes(values, symbols, true);
}

ArgumentFailure ArgumentChecker::check_integer(int index, const Checked& expected, int64_t value) const {
  if (value < (expected.not_negative ? 0 : signature_[index].min)) return {Kind::kNegativeInteger, index, 0, value};
  if (value > signature_[index].max) return {Kind::kIntegerTooLarge, index, 0, value};
  if (expected.int32 && value != static_cast<int32_t>(value)) return {Kind::kIntegerRange, index, 0, value};
  return {};
}

// The tensors were all looked at, so every symbol has its value, unless this is `of_inputs` that are known in part.
ArgumentFailure ArgumentChecker::check_integer_axes(const hstujit_value* values, const Symbols& symbols,
                                                    bool of_inputs) const {
  for (const IntegerAxis& axis : integer_axes_) {
    if (of_inputs && (arguments_[axis.argument].output || values[axis.integer].integer == kUnknownInteger ||
                      values[axis.argument].tensor->shape[axis.dimension] == kUnknownSize ||
                      (axis.symbol >= 0 && !is_bound(symbols, axis.symbol))))
      continue;
    const int64_t sequences = axis.symbol < 0 ? 0 : symbols.value[axis.symbol];
    const int64_t actual = values[axis.argument].tensor->shape[axis.dimension];
    const Dimension& dimension = signature_[axis.argument].shape[axis.dimension];
    if (dimension.integer_size(sequences, values[axis.integer].integer) != actual) {
      const int bound_by = axis.symbol < 0 ? -1 : symbols.bound_by[axis.symbol];
      return {Kind::kIntegerAxis, axis.argument, axis.dimension, actual, sequences, bound_by};
    }
  }
  return {};
}

ArgumentFailure ArgumentChecker::check_outputs(const hstujit_value* values) const {
  const int count = static_cast<int>(arguments_.size());
  for (int index = 0; index < count; ++index) {
    if (!arguments_[index].output || is_empty(*values[index].tensor)) continue;
    const DLTensor& output = *values[index].tensor;
    for (int other = 0; other < count; ++other) {
      // Two outputs meet once.
      if (!arguments_[other].tensor || other == index || (arguments_[other].output && other > index)) continue;
      const DLTensor& tensor = *values[other].tensor;
      if (is_empty(tensor)) continue;
      if (arguments_[index].in_place == other && have_one_place(output, tensor)) continue;
      if (share_bytes(output, tensor)) {
        return {Kind::kSharedMemory, index, 0, 0, 0, other};
      }
    }
  }
  return {};
}

ArgumentFailure ArgumentChecker::check_layout(int index, const Checked& expected, const DLTensor& tensor) {
  const int64_t bytes = expected.bits / 8;
  // The strides of a contiguous tensor follow from its sizes, whose product must be a number of bytes.
  int64_t elements = bytes;
  for (int i = 0; i < expected.rank; ++i) {
    if (__builtin_mul_overflow(elements, tensor.shape[i], &elements)) return {Kind::kTooLarge, index};
  }
  // Strides of dimensions of size 1 are never used; frameworks leave any number there.
  // The innermost one first: of rows that are columns in memory it is the one that is wrong.
  const int last = expected.rank - 1;
  if (last >= 0 && tensor.shape[last] != 1 && tensor_stride(tensor, last) != 1)
    return {Kind::kInnerStride, index, last, tensor_stride(tensor, last)};
  int64_t span = bytes;  // from the first to behind the last byte
  for (int i = 0; i < expected.rank; ++i) {
    if (tensor.shape[i] == 1) continue;
    const int64_t stride = tensor_stride(tensor, i);
    if (stride < 0) return {Kind::kNegativeStride, index, i, stride};
    int64_t step = 0;
    if (__builtin_mul_overflow(stride, bytes, &step)) return {Kind::kTooLarge, index};
    if (i < last && step % expected.alignment != 0) {
      return {Kind::kStrideAlignment, index, i, stride, expected.alignment};
    }
    if (__builtin_mul_overflow(tensor.shape[i] - 1, step, &step) || __builtin_add_overflow(span, step, &span)) {
      return {Kind::kTooLarge, index};
    }
  }
  int64_t end = 0;  // of no memory that there is, where an int64_t does not count so far
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(tensor_data(tensor)), span, &end))
    return {Kind::kNoAddress, index};
  return expected.output ? check_apart(index, tensor) : ArgumentFailure();
}

ArgumentFailure ArgumentChecker::check_tensor(int index, const Checked& expected, const DLTensor* tensor,
                                              const Placement& placement, Symbols& symbols, bool* empty) const {
  if (tensor == nullptr) return {Kind::kNullTensor, index};
  const int type = tensor->device.device_type;
  const bool right_place =
      placement.on_device ? type == kDLCUDA || type == kDLCUDAManaged : type == kDLCPU || type == kDLCUDAHost;
  if (!right_place) return {Kind::kDeviceType, index, 0, type};
  if (type == kDLCUDA && tensor->device.device_id != placement.ordinal) {
    return {Kind::kDeviceOrdinal, index, 0, tensor->device.device_id};
  }
  if (tensor->dtype.code != expected.code || tensor->dtype.bits != expected.bits || tensor->dtype.lanes != 1) {
    return {Kind::kDtype, index};
  }
  if (tensor->ndim != expected.rank) return {Kind::kRank, index, 0, tensor->ndim};
  if (tensor->shape == nullptr && expected.rank > 0) return {Kind::kNullShape, index};

  for (int i = 0; i < expected.rank; ++i) *empty = *empty || tensor->shape[i] == 0;
  return check_sizes(index, expected, tensor->shape, false, symbols);
}

ArgumentFailure ArgumentChecker::check_sizes(int index, const Checked& expected, const int64_t* sizes,
                                             bool may_be_unknown, Symbols& symbols) const {
  for (int i = 0; i < expected.rank; ++i) {
    const Dimension& dimension = signature_[index].shape[i];
    const int symbol = expected.symbols[i];
    const int64_t actual = sizes[i];
    if (may_be_unknown && actual == kUnknownSize) continue;
    if (actual < 0) return {Kind::kNegativeSize, index, i, actual};
    if ((expected.follows_integer >> i & 1) != 0) continue;  // check_integer_axes
    if (is_bound(symbols, symbol)) {
      const int64_t size = dimension.size(symbols.value[symbol]);
      if (actual != size) return {Kind::kSymbol, index, i, actual, size, symbols.bound_by[symbol]};
      continue;
    }
    const std::optional<int64_t> value = dimension.symbol_value(actual);
    if (!value) return {Kind::kSize, index, i, actual};
    if (symbol < 0) continue;
    symbols.bound |= uint32_t{1} << symbol;
    symbols.value[symbol] = *value;
    symbols.bound_by[symbol] = index;
  }
  return {};
}

ArgumentFailure ArgumentChecker::check_memory(int index, const Checked& expected, const DLTensor& tensor) {
  if (tensor.data == nullptr) return {Kind::kNullData, index};
  uintptr_t begin = 0;
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(tensor.data), tensor.byte_offset, &begin))
    return {Kind::kNoAddress, index};
  if (begin % static_cast<uintptr_t>(expected.alignment) != 0) {
    return {Kind::kPointerAlignment, index, 0, 0, expected.alignment};
  }
  return check_layout(index, expected, tensor);
}

}  // namespace hstujit
