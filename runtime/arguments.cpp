#include "runtime/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hstujit {

namespace {

using Kind = ArgumentFailure::Kind;

uint8_t dlpack_code(DataType type) {
  switch (type) {
    case DataType::kBf16:
      return kDLBfloat;
    case DataType::kFp16:
    case DataType::kFp32:
      return kDLFloat;
    case DataType::kInt32:
    case DataType::kInt64:
      return kDLInt;
  }
  return kDLInt;
}

std::string dtype_text(const DLDataType& type) {
  const char* name = type.code == kDLBfloat  ? "bfloat"
                     : type.code == kDLFloat ? "float"
                     : type.code == kDLInt   ? "int"
                     : type.code == kDLUInt  ? "uint"
                                             : nullptr;
  std::string text = name == nullptr ? fmt::format("DLPack type {} of {} bits", type.code, type.bits)
                                     : fmt::format("{}{}", name, type.bits);
  if (type.lanes != 1) text += fmt::format("x{}", type.lanes);
  return text;
}

std::string place_text(int device_type) {
  switch (device_type) {
    case kDLCPU:
      return "host memory";
    case kDLCUDA:
      return "CUDA memory";
    case kDLCUDAHost:
      return "pinned host memory";
    case kDLCUDAManaged:
      return "managed CUDA memory";
    default:
      return fmt::format("memory of DLPack device type {}", device_type);
  }
}

std::string shape_text(const Argument& argument) {
  std::string text;
  for (const Dimension& dimension : argument.shape) {
    if (!text.empty()) text += ", ";
    text += to_string(dimension);
  }
  return "(" + text + ")";
}

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

bool is_empty(const DLTensor& tensor) {
  return std::any_of(tensor.shape, tensor.shape + tensor.ndim, [](int64_t size) { return size == 0; });
}

// Bytes from the first to behind the last of dimensions `from` and inner ones.
int64_t span_bytes(const DLTensor& tensor, int from) {
  const int64_t bytes = tensor.dtype.bits / 8;
  int64_t span = bytes;
  for (int i = from; i < tensor.ndim; ++i) {
    if (tensor.shape[i] > 1) span += (tensor.shape[i] - 1) * tensor_stride(tensor, i) * bytes;
  }
  return span;
}

int64_t floor_div(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor != 0 && (value < 0) != (divisor < 0) ? 1 : 0);
}

// Whether two tensors that are not empty have a byte in common, `distance` being from the begin of `a` to that of `b`.
// Slices of one matrix interleave without meeting: where both step over the same number of bytes, rows `a[i]` and
// `b[j]` lie apart by `distance` less the steps between them, and only the two such distances nearest to 0 can meet.
// Tensors of different strides are taken to fill all that they span.
bool share_bytes(const DLTensor& a, const DLTensor& b, int dimension, int64_t distance) {
  const int64_t span_a = span_bytes(a, dimension), span_b = span_bytes(b, dimension);
  if (distance >= span_a || -distance >= span_b) return false;
  if (a.ndim != b.ndim || dimension == a.ndim) return true;
  const int64_t rows_a = a.shape[dimension], rows_b = b.shape[dimension];
  const int64_t step_a = tensor_stride(a, dimension) * (a.dtype.bits / 8);
  const int64_t step_b = tensor_stride(b, dimension) * (b.dtype.bits / 8);
  // The stride of a single row is never used, and may be any.
  const int64_t step = rows_a > 1 ? step_a : step_b;
  if (rows_a == 1 && rows_b == 1) return share_bytes(a, b, dimension + 1, distance);
  if (rows_a > 1 && rows_b > 1 && step_a != step_b) return true;
  if (step < std::max(span_bytes(a, dimension + 1), span_bytes(b, dimension + 1))) return true;
  const int64_t steps = floor_div(distance, step), rest = distance - steps * step;
  const auto has_rows = [&](int64_t apart) { return apart < rows_a && -apart < rows_b; };
  return (has_rows(steps) && share_bytes(a, b, dimension + 1, rest)) ||
         (has_rows(steps + 1) && share_bytes(a, b, dimension + 1, rest - step));
}

}  // namespace

int64_t tensor_stride(const DLTensor& tensor, int dimension) {
  if (tensor.strides != nullptr) return tensor.strides[dimension];
  int64_t stride = 1;
  for (int inner = tensor.ndim - 1; inner > dimension; --inner) stride *= tensor.shape[inner];
  return stride;
}

Result<ArgumentChecker> ArgumentChecker::create(const Signature& signature) {
  ArgumentChecker checker(signature);
  HSTUJIT_RETURN_IF_ERROR(checker.read_signature());
  return checker;
}

Status ArgumentChecker::read_signature() {
  for (const Argument& argument : signature_) {
    if (argument.shape.size() > static_cast<size_t>(kMaxRank)) {
      return Status(Code::kUnsupported,
                    fmt::format("{} has rank {}, shape {}; a tensor may have at most {} dimensions", argument.name,
                                argument.shape.size(), shape_text(argument), kMaxRank));
    }
    Checked checked;
    checked.tensor = argument.kind == ArgumentKind::kTensor;
    checked.integer = argument.kind == ArgumentKind::kInt;
    checked.output = argument.role == ArgumentRole::kOutput;
    if (checked.tensor) {
      checked.code = dlpack_code(argument.dtype);
      checked.bits = static_cast<uint8_t>(8 * size_of(argument.dtype));
      checked.alignment = std::max(argument.alignment, static_cast<int>(size_of(argument.dtype)));
      checked.rank = static_cast<int>(argument.shape.size());
      for (int i = 0; i < checked.rank; ++i) {
        const Dimension& dimension = argument.shape[i];
        int& symbol = checked.symbols[i];
        symbol = -1;
        if (dimension.is_constant()) continue;
        symbol = static_cast<int>(std::find(symbols_.begin(), symbols_.end(), dimension.symbol) - symbols_.begin());
        if (symbol == static_cast<int>(symbols_.size())) symbols_.push_back(dimension.symbol);
        if (symbols_.size() > static_cast<size_t>(kMaxSymbols)) {
          return Status(Code::kUnsupported,
                        fmt::format("{} has the size {}, symbol number {} of this signature; at most {} are allowed",
                                    argument.name, dimension.symbol, symbols_.size(), kMaxSymbols));
        }
      }
    }
    arguments_.push_back(checked);
  }
  return {};
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
      const int64_t value = values[index].integer;
      if (expected.not_negative && value < 0) return {Kind::kNegativeInteger, index, 0, value};
      if (value > signature_[index].most) return {Kind::kIntegerTooLarge, index, 0, value};
      if (expected.int32 && value != static_cast<int32_t>(value)) return {Kind::kIntegerRange, index, 0, value};
    } else if (!std::isfinite(values[index].real)) {
      return {Kind::kNotFinite, index};
    }
  }
  *nothing_to_write = !written;
  return check_outputs(values);
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
      if (share_bytes(output, tensor, 0, tensor_data(tensor) - tensor_data(output))) {
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
    if (__builtin_mul_overflow(elements, tensor.shape[i], &elements))
      return {Kind::kTooLarge, index, i, tensor.shape[i]};
  }
  // Strides of dimensions of size 1 are never used; frameworks leave any number there.
  int64_t span = bytes;  // from the first to behind the last byte
  for (int i = 0; i < expected.rank; ++i) {
    if (tensor.shape[i] == 1) continue;
    const int64_t stride = tensor_stride(tensor, i);
    if (i == expected.rank - 1) {
      if (stride != 1) return {Kind::kInnerStride, index, i, stride};
    } else if (stride < 0) {
      return {Kind::kNegativeStride, index, i, stride};
    }
    int64_t step = 0;
    if (__builtin_mul_overflow(stride, bytes, &step)) return {Kind::kTooLarge, index, i, stride};
    if (i < expected.rank - 1 && step % expected.alignment != 0) {
      return {Kind::kStrideAlignment, index, i, stride, expected.alignment};
    }
    if (__builtin_mul_overflow(tensor.shape[i] - 1, step, &step) || __builtin_add_overflow(span, step, &span)) {
      return {Kind::kTooLarge, index, i, stride};
    }
  }
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

  int64_t elements = 1;
  for (int i = 0; i < expected.rank; ++i) {
    const Dimension& dimension = signature_[index].shape[i];
    const int symbol = expected.symbols[i];
    const int64_t actual = tensor->shape[i];
    if (actual < 0) return {Kind::kNegativeSize, index, i, actual};
    elements *= actual == 0 ? 0 : 1;
    if (symbol >= 0 && (symbols.bound >> symbol & 1) != 0) {
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
  *empty = elements == 0;
  if (*empty) return {};

  if (tensor->data == nullptr) return {Kind::kNullData, index};
  if (reinterpret_cast<uintptr_t>(tensor_data(*tensor)) % static_cast<uintptr_t>(expected.alignment) != 0) {
    return {Kind::kPointerAlignment, index, 0, 0, expected.alignment};
  }
  return check_layout(index, expected, *tensor);
}

Status ArgumentChecker::explain(const ArgumentFailure& failure, const hstujit_value* values,
                                const Placement& placement) const {
  if (failure.none()) return {};
  if (failure.kind == Kind::kCount) {
    std::string names;
    for (const Argument& argument : signature_) names += (names.empty() ? "" : ", ") + argument.name;
    return Status(Code::kInvalidArgument,
                  fmt::format("{} values are given{}; this op takes {}: {}", failure.value,
                              values == nullptr ? " at a null pointer" : "", signature_.size(), names));
  }
  const Argument& argument = signature_[failure.argument];
  const auto dimension_name = [&] { return fmt::format("{}.shape[{}]", argument.name, failure.dimension); };
  const auto stride_name = [&] { return fmt::format("{}.strides[{}]", argument.name, failure.dimension); };
  std::string text;
  switch (failure.kind) {
    case Kind::kNone:
    case Kind::kCount:
      break;
    case Kind::kNullTensor:
      text = fmt::format("{} is a null pointer; it must be a tensor {}", argument.name, shape_text(argument));
      break;
    case Kind::kNullShape:
      text = fmt::format("{}.shape is a null pointer; it must hold {} sizes {}", argument.name, argument.shape.size(),
                         shape_text(argument));
      break;
    case Kind::kDeviceType:
      text = fmt::format("{} is in {}; it must be in {}", argument.name, place_text(static_cast<int>(failure.value)),
                         placement.on_device ? "CUDA memory" : "host memory");
      break;
    case Kind::kDeviceOrdinal:
      text = fmt::format("{} is on CUDA device {}; it must be on device {}, that of the current context", argument.name,
                         failure.value, placement.ordinal);
      break;
    case Kind::kDtype:
      text = fmt::format("{} has dtype {}; it must be {}", argument.name,
                         dtype_text(values[failure.argument].tensor->dtype), to_string(argument.dtype));
      break;
    case Kind::kRank:
      text = fmt::format("{} has rank {}; it must have rank {}, shape {}", argument.name, failure.value,
                         argument.shape.size(), shape_text(argument));
      break;
    case Kind::kNegativeSize:
      text = fmt::format("{} is {}; it must be 0 or more", dimension_name(), failure.value);
      break;
    case Kind::kSize:
      text = fmt::format("{} is {}; it must be {}, shape {}", dimension_name(), failure.value,
                         to_string(argument.shape[failure.dimension]), shape_text(argument));
      break;
    case Kind::kSymbol:
      text = fmt::format("{} is {}; it must be {} = {}, as in {}", dimension_name(), failure.value,
                         to_string(argument.shape[failure.dimension]), failure.allowed, signature_[failure.other].name);
      break;
    case Kind::kNullData:
      text = fmt::format("{} has a null data pointer; only an empty tensor may", argument.name);
      break;
    case Kind::kInnerStride:
      text = fmt::format("{} is {}; the innermost stride must be 1", stride_name(), failure.value);
      break;
    case Kind::kNegativeStride:
      text = fmt::format("{} is {}; it must be 0 or more", stride_name(), failure.value);
      break;
    case Kind::kPointerAlignment:
      text = fmt::format("{} is at address {}; it must be a multiple of {} bytes", argument.name,
                         fmt::ptr(tensor_data(*values[failure.argument].tensor)), failure.allowed);
      break;
    case Kind::kStrideAlignment:
      text = fmt::format("{} is {} elements, {} bytes; it must be a multiple of {} bytes", stride_name(), failure.value,
                         failure.value * static_cast<int64_t>(size_of(argument.dtype)), failure.allowed);
      break;
    case Kind::kTooLarge:
      text = fmt::format("{} has a size or stride of {} in dimension {}; a tensor may span less than 2^63 bytes",
                         argument.name, failure.value, failure.dimension);
      break;
    case Kind::kOverlap:
      text = fmt::format("{} is {}; it must be {} or more, since elements of an output must not overlap", stride_name(),
                         failure.value, failure.allowed);
      break;
    case Kind::kSharedMemory: {
      const DLTensor& output = *values[failure.argument].tensor;
      const DLTensor& other = *values[failure.other].tensor;
      text = fmt::format(
          "{} spans {} bytes at {} and {} spans {} at {}; an output must share no element with another tensor",
          argument.name, span_bytes(output, 0), fmt::ptr(tensor_data(output)), signature_[failure.other].name,
          span_bytes(other, 0), fmt::ptr(tensor_data(other)));
      break;
    }
    case Kind::kIntegerRange:
      text = fmt::format("{} is {}; it must be between {} and {}", argument.name, failure.value,
                         std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
      break;
    case Kind::kNegativeInteger:
      text = fmt::format("{} is {}; it must be 0 or more", argument.name, failure.value);
      break;
    case Kind::kIntegerTooLarge:
      text = fmt::format("{} is {}; it must be at most {}", argument.name, failure.value, argument.most);
      break;
    case Kind::kNotFinite:
      text = fmt::format("{} is {}; it must be a finite number", argument.name, values[failure.argument].real);
      break;
  }
  return Status(Code::kInvalidArgument, text);
}

}  // namespace hstujit
