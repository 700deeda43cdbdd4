// The sentences for what ArgumentChecker finds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/spec/limits.h"
#include "runtime/launch/arguments.h"
#include "runtime/launch/data_type_name.h"

namespace hstujit {

namespace {

using Kind = ArgumentFailure::Kind;

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

std::string layout_text(const DLTensor& tensor) {
  const auto list = [&](const int64_t* values) {
    return fmt::format("({})", fmt::join(values, values + tensor.ndim, ", "));
  };
  return fmt::format("shape {}{}", list(tensor.shape),
                     tensor.strides == nullptr ? "" : fmt::format(" and strides {}", list(tensor.strides)));
}

// "at least 1, " of B+1, "at most 100, " of a symbol that has a bound; nothing where 0 will do, or the one size is
// said.
std::string bounds_of(const Dimension& dimension) {
  std::string text = dimension.is_constant() || dimension.bias <= 0 ? "" : fmt::format("at least {}, ", dimension.bias);
  if (dimension.max < std::numeric_limits<int64_t>::max())
    text += fmt::format("at most {}, ", dimension.size(dimension.max));
  return text;
}

// kIntegerAxis: the size that is asked for, and the numbers that it comes from.
std::string integer_axis_text(const ArgumentFailure& failure, const Signature& signature, const hstujit_value* values) {
  const Argument& argument = signature[failure.argument];
  const Dimension& dimension = argument.shape[failure.dimension];
  const int64_t rows = values[find_argument(signature, dimension.integer)].integer;
  if (dimension.is_scalar()) {
    return fmt::format("{}.shape[{}] is {}; it must be {}, which is {}", argument.name, failure.dimension,
                       failure.value, dimension.integer, rows);
  }
  const std::optional<int64_t> size = dimension.integer_size(failure.allowed, rows);
  return fmt::format("{}.shape[{}] is {}; it must be {}{}, with {} = {} (from {}) and {} = {}{}", argument.name,
                     failure.dimension, failure.value, to_string(dimension), size ? fmt::format(" = {}", *size) : "",
                     dimension.symbol, failure.allowed, signature[failure.other].name, dimension.integer, rows,
                     size ? "" : ", which no tensor can be");
}

// ", as seq_offsets" of what has the data type of the offsets.
std::string offsets_text(const Signature& signature, const Argument& argument) {
  if (argument.semantic != Semantic::kOffsets && argument.semantic != Semantic::kCounts) return "";
  const auto first = std::find_if(signature.begin(), signature.end(),
                                  [](const Argument& other) { return other.semantic == Semantic::kOffsets; });
  if (first == signature.end()) return "";
  return first->name == argument.name ? ", which offsets_dtype of the instance says" : ", as " + first->name;
}

}  // namespace

Status ArgumentChecker::explain(const ArgumentFailure& failure, const hstujit_value* values,
                                const Placement& placement) const {
  if (failure.none()) return {};
  if (failure.kind == Kind::kCount) {
    std::string names;
    for (const Argument& argument : signature_) names += (names.empty() ? "" : ", ") + argument.name;
    return Status(Code::kInvalidArgument,
                  fmt::format("{} value{} given{}; this op takes {}: {}", static_cast<size_t>(failure.value),
                              failure.value == 1 ? " is" : "s are", values == nullptr ? " at a null pointer" : "",
                              signature_.size(), names));
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
      text = fmt::format("{} has dtype {}; it must be {}{}", argument.name,
                         dtype_text(values[failure.argument].tensor->dtype), to_string(argument.dtype),
                         offsets_text(signature_, argument));
      break;
    case Kind::kRank:
      text = fmt::format("{} has rank {}; it must have rank {}, shape {}", argument.name, failure.value,
                         argument.shape.size(), shape_text(argument));
      break;
    case Kind::kNegativeSize:
      text = fmt::format("{} is {}; it must be 0 or more", dimension_name(), failure.value);
      break;
    case Kind::kSize:
      text = fmt::format("{} is {}; it must be {}, {}shape {}", dimension_name(), failure.value,
                         to_string(argument.shape[failure.dimension]), bounds_of(argument.shape[failure.dimension]),
                         shape_text(argument));
      break;
    case Kind::kSymbol:
      text = fmt::format("{} is {}; it must be {} = {}, as in {}", dimension_name(), failure.value,
                         to_string(argument.shape[failure.dimension]), failure.allowed, signature_[failure.other].name);
      break;
    case Kind::kIntegerAxis:
      text = integer_axis_text(failure, signature_, values);
      break;
    case Kind::kNullData:
      text = fmt::format("{} has a null data pointer; only an empty tensor may", argument.name);
      break;
    case Kind::kInnerStride:
      return Status(Code::kInvalidArgument,
                    fmt::format("{} is {}; the innermost stride must be 1", stride_name(), failure.value),
                    {stride_name(), fmt::to_string(failure.value), "1", ""});
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
      text = fmt::format("{} has {}; a tensor may span less than 2^63 bytes", argument.name,
                         layout_text(*values[failure.argument].tensor));
      break;
    case Kind::kNoAddress: {
      const DLTensor& tensor = *values[failure.argument].tensor;
      text = fmt::format("{} has {}, data {} and byte_offset {}; a tensor must end below address 2^63", argument.name,
                         layout_text(tensor), fmt::ptr(tensor.data), tensor.byte_offset);
      break;
    }
    case Kind::kOverlap:
      text = fmt::format("{} is {}; it must be {} or more, since elements of an output must not overlap", stride_name(),
                         failure.value, failure.allowed);
      break;
    case Kind::kSharedMemory: {
      const DLTensor& output = *values[failure.argument].tensor;
      const DLTensor& other = *values[failure.other].tensor;
      text = fmt::format(
          "{} spans {} bytes at {} and {} spans {} at {}; an output must share no element with another tensor{}",
          argument.name, span_bytes(output), fmt::ptr(tensor_data(output)), signature_[failure.other].name,
          span_bytes(other), fmt::ptr(tensor_data(other)),
          argument.in_place.empty()
              ? ""
              : fmt::format(", unless all of {} is in the place of {}", argument.name, argument.in_place));
      break;
    }
    case Kind::kSequences:
      text = fmt::format("{} is of {} sequences; allowed: at most {}", argument.name, failure.value, kMaxSeqLen);
      break;
    case Kind::kIntegerRange:
      text = fmt::format("{} is {}; it must be between {} and {}", argument.name, failure.value,
                         std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
      break;
    case Kind::kNegativeInteger:
      text = fmt::format("{} is {}; it must be {} or more", argument.name, failure.value,
                         arguments_[failure.argument].not_negative ? 0 : argument.min);
      break;
    case Kind::kIntegerTooLarge:
      text = fmt::format("{} is {}; it must be at most {}", argument.name, failure.value, argument.max);
      break;
    case Kind::kNotFinite:
      text = fmt::format("{} is {}; it must be a finite number of fp32", argument.name, values[failure.argument].real);
      break;
    case Kind::kRealRange:
      text = fmt::format("{} is {}; it must be {}", argument.name, values[failure.argument].real,
                         to_string(argument.range));
      break;
  }
  return Status(Code::kInvalidArgument, std::move(text), {argument.name, "", "", ""});
}

}  // namespace hstujit
