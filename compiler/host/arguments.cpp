#include "compiler/host/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace hstujit {

namespace {

Status invalid(const Argument& argument, const std::string& what) {
  return Status(Code::kInvalidArgument, fmt::format("{} {}", argument.name, what));
}

}  // namespace

Result<Arguments> Arguments::bind(const Signature& signature, const HstujitHostValue* values, size_t count) {
  if (count != signature.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} arguments were given; this operator takes {}", count, signature.size()));
  }
  if (values == nullptr && count > 0)
    return Status(Code::kInvalidArgument, "values is null; it must point to the arguments");
  Arguments arguments(signature, values);
  for (size_t i = 0; i < count; ++i) {
    if (signature[i].kind == ArgumentKind::kTensor) {
      HSTUJIT_RETURN_IF_ERROR(arguments.bind_tensor(signature[i], values[i]));
    } else if (signature[i].kind == ArgumentKind::kInt && values[i].integer < signature[i].min) {
      return invalid(signature[i], fmt::format("is {}; it must be at least {}", values[i].integer, signature[i].min));
    } else if (signature[i].kind == ArgumentKind::kInt && values[i].integer > signature[i].max) {
      return invalid(signature[i], fmt::format("is {}; it must be at most {}", values[i].integer, signature[i].max));
    } else if (signature[i].kind == ArgumentKind::kFloat && !signature[i].range.contains(values[i].real)) {
      return invalid(signature[i], fmt::format("is {}; it must be {}", values[i].real, to_string(signature[i].range)));
    }
  }
  for (size_t i = 0; i < count; ++i) {
    for (size_t axis = 0; axis < signature[i].shape.size(); ++axis) {
      HSTUJIT_RETURN_IF_ERROR(arguments.check_integer_axis(signature[i], axis, values[i]));
    }
  }
  return arguments;
}

// The size follows from arguments that may come later.
Status Arguments::check_integer_axis(const Argument& argument, size_t axis, const HstujitHostValue& value) const {
  const Dimension& dimension = argument.shape[axis];
  if (!dimension.follows_integer()) return Status();
  const int64_t rows = integer(dimension.integer);
  if (dimension.is_scalar()) {
    if (value.shape[axis] == rows) return Status();
    return invalid(argument, fmt::format("has size {} along axis {}; it must be {}, which is {}", value.shape[axis],
                                         axis, dimension.integer, rows));
  }
  const int64_t sequences = symbol(dimension.symbol);
  if (value.shape[axis] == dimension.integer_size(sequences, rows)) return Status();
  return invalid(argument,
                 fmt::format("has size {} along axis {}; it must be {}, with {} sequences and {} = {}",
                             value.shape[axis], axis, to_string(dimension), sequences, dimension.integer, rows));
}

Status Arguments::bind_tensor(const Argument& argument, const HstujitHostValue& value) {
  const size_t rank = argument.shape.size();
  if (value.rank < 0 || static_cast<size_t>(value.rank) != rank) {
    return invalid(argument, fmt::format("has rank {}; it must be {}", value.rank, rank));
  }
  if (value.shape == nullptr || value.strides == nullptr) return invalid(argument, "has no shape or no strides");
  bool empty = false;
  for (size_t axis = 0; axis < rank; ++axis) {
    HSTUJIT_RETURN_IF_ERROR(bind_dimension(argument, axis, value.shape[axis]));
    empty = empty || value.shape[axis] == 0;
  }
  if (empty) return Status();
  if (value.data == nullptr) return invalid(argument, "is null; only a tensor without elements may be");
  if (reinterpret_cast<uintptr_t>(value.data) % size_of(argument.dtype) != 0) {
    return invalid(argument, fmt::format("is not aligned to its {}-byte elements", size_of(argument.dtype)));
  }
  if (value.shape[rank - 1] > 1 && value.strides[rank - 1] != 1) {
    return invalid(argument, fmt::format("has the innermost stride {}; it must be 1", value.strides[rank - 1]));
  }
  return Status();
}

Status Arguments::bind_dimension(const Argument& argument, size_t axis, int64_t size) {
  const Dimension& dimension = argument.shape[axis];
  if (size < 0) return invalid(argument, fmt::format("has size {} along axis {}; sizes are not negative", size, axis));
  if (dimension.follows_integer()) return Status();
  if (const auto known = symbols_.find(dimension.symbol); known != symbols_.end()) {
    const int64_t expected = dimension.size(known->second);
    if (size == expected) return Status();
    return invalid(argument, fmt::format("has size {} along axis {}; it must be {} = {}, as in the arguments before it",
                                         size, axis, to_string(dimension), expected));
  }
  const std::optional<int64_t> value = dimension.symbol_value(size);
  if (!value) {
    return invalid(argument, fmt::format("has size {} along axis {}; it must be {}", size, axis, to_string(dimension)));
  }
  if (!dimension.is_constant()) symbols_.emplace(dimension.symbol, *value);
  return Status();
}

int64_t Arguments::symbol(const std::string& name) const {
  const auto found = symbols_.find(name);
  assert(found != symbols_.end());
  return found->second;
}

const HstujitHostValue& Arguments::find(std::string_view name) const {
  const int index = find_argument(*signature_, name);
  assert(index >= 0);
  return values_[index];
}

int64_t Arguments::integer(std::string_view name) const { return find(name).integer; }
double Arguments::real(std::string_view name) const { return find(name).real; }

int64_t Arguments::element(std::string_view name, int64_t index) const {
  const Argument& argument = (*signature_)[static_cast<size_t>(find_argument(*signature_, name))];
  const HstujitHostValue& value = find(name);
  if (argument.dtype == DataType::kInt32) return static_cast<const int32_t*>(value.data)[index];
  return static_cast<const int64_t*>(value.data)[index];
}

std::vector<int64_t> clamped_offsets(const Arguments& arguments, std::string_view name, int64_t sequences,
                                     int64_t rows) {
  std::vector<int64_t> offsets;
  for (int64_t b = 0; b <= sequences; ++b) {
    offsets.push_back(std::clamp(arguments.element(name, b), offsets.empty() ? int64_t{0} : offsets.back(), rows));
  }
  return offsets;
}

}  // namespace hstujit
