#include "tests/host/host_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "compiler/spec/closeness.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/hash.h"
#include "tests/paths.h"

namespace hstujit {

namespace {

constexpr size_t kErrorSize = 512;

// Names one of 16 folders: all tests' kernels together are more than a folder may have (HSTUJIT_HOST_MAX_OBJECTS), and
// each run would replace in it what the next one looks for.
std::string objects_folder(const OpSpec& spec, Direction direction) {
  const std::string digest = sha256_hex(spec.to_json().dump() + std::string(to_string(direction)));
  return kept_path(fmt::format("/host/{}", digest[0]));
}

// Bytes of the innermost axis.
size_t line_bytes(const std::vector<int64_t>& shape, size_t element) {
  return static_cast<size_t>(shape.back()) * element;
}

// Calls visit(index, place) for each line of a tensor in order; `place` is where it begins, in elements.
template <class Visitor>
void for_each_line(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, const Visitor& visit) {
  int64_t lines = 1;
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) lines *= shape[axis];
  for (int64_t index = 0; index < lines; ++index) {
    int64_t place = 0, rest = index;
    for (size_t axis = shape.size() - 1; axis-- > 0; rest /= shape[axis]) place += rest % shape[axis] * strides[axis];
    visit(static_cast<size_t>(index), place);
  }
}

}  // namespace

KeptFiles kept_objects(const OpSpec& spec, Direction direction) {
  return KeptFiles(objects_folder(spec, direction), HSTUJIT_HOST_MAX_OBJECTS);
}

OpSpecPtr make_spec(const nlohmann::ordered_json& json) {
  auto spec = parse_op_spec(json, "spec");
  if (!spec.ok()) throw std::runtime_error(spec.status().message());
  return *spec;
}

HostHandle::HostHandle(const OpSpec& spec, int threads, Direction direction) {
  const nlohmann::ordered_json request = {{"spec", spec.to_json()},
                                          {"direction", to_string(direction)},
                                          {"threads", threads},
                                          {"objects", objects_folder(spec, direction)}};
  char error[kErrorSize] = "";
  handle_ = hstujit_host_create(request.dump().c_str(), error, sizeof(error));
  error_ = error;
}

HostCall::HostCall(OpSpecPtr spec, const Lengths& lengths, uint64_t seed, int64_t row_padding, Direction direction)
    : spec_(std::move(spec)),
      direction_(direction),
      signature_(spec_->signature(direction)),
      inputs_(spec_->make_inputs(direction, lengths, seed)),
      lengths_(lengths),
      row_padding_(row_padding) {}

size_t HostCall::index(std::string_view name) const {
  const int found = find_argument(signature_, name);
  if (found < 0) throw std::runtime_error("no argument " + std::string(name));
  return static_cast<size_t>(found);
}

int64_t HostCall::size_of_axis(const Dimension& dimension) const {
  if (dimension.is_constant()) return dimension.bias;
  if (dimension.is_scalar()) return static_cast<int64_t>(inputs_[index(dimension.integer)].scalar);
  if (dimension.is_jagged() || dimension.is_uniform()) return lengths_.total_rows(row_axis(dimension));
  const auto sizes = spec_->generated_sizes(lengths_);
  if (const auto size = sizes.find(dimension.symbol); size != sizes.end()) return size->second;
  return dimension.size(dimension.symbol == "L" ? lengths_.total_rows() : static_cast<int64_t>(lengths_.rows.size()));
}

std::vector<int64_t> HostCall::output_shape(const Argument& argument) const {
  std::vector<int64_t> shape;
  for (const Dimension& dimension : argument.shape) shape.push_back(size_of_axis(dimension));
  return shape;
}

// Room behind the lines of rows: behind the rows of a tensor of rank 2 and all heads of one of rank 3, behind each row
// of one of rank 4, whose lines have no width that is sure to be aligned.
std::vector<int64_t> HostCall::strides_of(const Argument& argument, const std::vector<int64_t>& shape) const {
  std::vector<int64_t> strides(shape.size(), 1);
  const int64_t unit = std::max<int64_t>(argument.alignment / static_cast<int64_t>(size_of(argument.dtype)), 1);
  for (size_t axis = shape.size() - 1; axis-- > 0;) {
    strides[axis] = shape[axis + 1] * strides[axis + 1];
    const bool padded = shape.size() < 4 ? axis == 0 : axis == 2;
    if (padded) strides[axis] += row_padding_;
    if (shape.size() == 4 && padded) strides[axis] = (strides[axis] + unit - 1) / unit * unit;
  }
  return strides;
}

void HostCall::pack_inputs() {
  storage_.assign(signature_.size(), {});
  values_.assign(signature_.size(), {});
  for (size_t i = 0; i < signature_.size(); ++i) {
    const Argument& argument = signature_[i];
    HstujitHostValue& value = values_[i];
    value.real = inputs_[i].scalar;
    value.integer = static_cast<int64_t>(inputs_[i].scalar);
    if (argument.kind != ArgumentKind::kTensor) continue;
    Storage& storage = storage_[i];
    const size_t element = size_of(argument.dtype);
    const std::vector<int64_t> dense_shape =
        argument.role == ArgumentRole::kInput ? inputs_[i].tensor.shape : output_shape(argument);
    storage.shape = dense_shape;
    if (argument.shape[0].is_jagged()) storage.shape[0] += extra_rows_;
    storage.strides = strides_of(argument, storage.shape);
    storage.bytes.assign(static_cast<size_t>(storage.shape[0] * storage.strides[0]) * element, kUntouched);
    if (argument.role == ArgumentRole::kInput) {
      const std::vector<std::byte> dense = pack(inputs_[i].tensor, argument.dtype);
      const size_t line = line_bytes(dense_shape, element);
      for_each_line(dense_shape, storage.strides, [&](size_t index, int64_t place) {
        std::memcpy(storage.bytes.data() + static_cast<size_t>(place) * element, dense.data() + index * line, line);
      });
    }
    value.data = storage.bytes.data();
    value.shape = storage.shape.data();
    value.strides = storage.strides.data();
    value.rank = static_cast<int>(storage.shape.size());
  }
}

int HostCall::launch(const HostHandle& handle) {
  if (values_.empty()) pack_inputs();
  char error[kErrorSize] = "";
  const int code = hstujit_host_launch(handle.get(), values_.data(), values_.size(), error, sizeof(error));
  error_ = error;
  return code;
}

HostTensor HostCall::read(std::string_view name) const {
  const Storage& storage = storage_[index(name)];
  const DataType dtype = signature_[index(name)].dtype;
  const size_t element = size_of(dtype);
  std::vector<int64_t> shape = dense_shape(index(name));
  const size_t line = line_bytes(shape, element);
  std::vector<std::byte> dense;
  for_each_line(shape, storage.strides, [&](size_t, int64_t place) {
    const std::byte* from = storage.bytes.data() + static_cast<size_t>(place) * element;
    dense.insert(dense.end(), from, from + line);
  });
  return unpack(dense, dtype, std::move(shape));
}

std::string HostCall::mistakes() const {
  std::vector<HostValue> expected = inputs_;
  spec_->reference(direction_, lengths_, expected);
  ReferenceComparison comparison(*spec_, direction_, lengths_, inputs_, expected);
  std::string mistakes;
  for (size_t i = 0; i < signature_.size(); ++i) {
    if (signature_[i].role != ArgumentRole::kOutput) continue;
    if (is_integer(signature_[i].dtype)) {
      if (read(signature_[i].name).integers != expected[i].tensor.integers)
        mistakes += signature_[i].name + " differs from the reference\n";
      continue;
    }
    const Closeness closeness = comparison.of(i, read(signature_[i].name).reals);
    if (!closeness.good()) mistakes += closeness.mistake + "\n";
  }
  return mistakes;
}

std::vector<int64_t> HostCall::dense_shape(size_t index) const {
  std::vector<int64_t> shape = storage_[index].shape;
  if (signature_[index].shape[0].is_jagged()) shape[0] -= extra_rows_;
  return shape;
}

std::vector<bool> HostCall::used_bytes(std::string_view name) const {
  const size_t i = index(name), element = size_of(signature_[i].dtype);
  const std::vector<int64_t> shape = dense_shape(i);
  std::vector<bool> used(storage_[i].bytes.size());
  for_each_line(shape, storage_[i].strides, [&](size_t, int64_t place) {
    const auto first = used.begin() + place * static_cast<int64_t>(element);
    std::fill(first, first + static_cast<int64_t>(line_bytes(shape, element)), true);
  });
  return used;
}

std::string HostCall::written_elsewhere() const {
  for (const Argument& argument : signature_) {
    if (argument.role != ArgumentRole::kOutput) continue;
    const std::vector<bool> used = used_bytes(argument.name);
    const std::vector<std::byte>& bytes = this->bytes(argument.name);
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (!used[i] && bytes[i] != kUntouched) return fmt::format("byte {} of {}", i, argument.name);
    }
  }
  return "";
}

const std::vector<std::byte>& HostCall::bytes(std::string_view name) const { return storage_[index(name)].bytes; }
HstujitHostValue& HostCall::value(std::string_view name) { return values_[index(name)]; }

}  // namespace hstujit
