#include "tests/host/host_call.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "compiler/spec/rounding.h"

namespace hstujit {

namespace {

constexpr size_t kErrorSize = 512;

}  // namespace

OpSpecPtr make_spec(const nlohmann::ordered_json& json) {
  auto spec = parse_op_spec(json, "spec");
  if (!spec.ok()) throw std::runtime_error(spec.status().message());
  return *spec;
}

namespace {

double relative_error(const std::vector<double>& a, const std::vector<double>& b, double parts_norm) {
  double difference = 0, norm = parts_norm * parts_norm;
  for (size_t i = 0; i < b.size(); ++i) {
    if (!std::isfinite(a[i])) return std::numeric_limits<double>::infinity();
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace

double relative_error(const std::vector<double>& a, const std::vector<double>& b) { return relative_error(a, b, 0); }

double relative_error(const HostTensor& a, const HostTensor& b) {
  return relative_error(a.reals, b.reals, b.parts_norm);
}

HostHandle::HostHandle(const OpSpec& spec, int threads, Direction direction) {
  const nlohmann::ordered_json request = {
      {"spec", spec.to_json()}, {"direction", to_string(direction)}, {"threads", threads}};
  char error[kErrorSize] = "";
  handle_ = hstujit_host_create(request.dump().c_str(), error, sizeof(error));
  error_ = error;
}

HostCall::HostCall(OpSpecPtr spec, const Lengths& lengths, uint64_t seed, int64_t row_padding, Direction direction)
    : spec_(std::move(spec)),
      signature_(spec_->signature(direction)),
      inputs_(spec_->make_inputs(direction, lengths, seed)),
      lengths_(lengths),
      row_padding_(row_padding) {}

size_t HostCall::index(std::string_view name) const {
  const int found = find_argument(signature_, name);
  if (found < 0) throw std::runtime_error("no argument " + std::string(name));
  return static_cast<size_t>(found);
}

int64_t HostCall::rows_of(const Argument& argument) const {
  const bool all = argument.shape[0].is_jagged() && argument.shape[0].offsets == "seq_offsets";
  return all ? lengths_.total_rows() : lengths_.total_delta_rows();
}

std::vector<int64_t> HostCall::shape_of(const Argument& argument) const {
  std::vector<int64_t> shape;
  for (const Dimension& dimension : argument.shape) {
    if (dimension.is_jagged() || dimension.is_uniform()) {
      shape.push_back(rows_of(argument));
    } else if (dimension.is_scalar()) {
      shape.push_back(static_cast<int64_t>(inputs_[index(dimension.integer)].scalar));
    } else {
      const auto batch = static_cast<int64_t>(lengths_.rows.size());
      shape.push_back(dimension.is_constant() ? dimension.bias : dimension.size(batch));
    }
  }
  return shape;
}

void HostCall::for_each_row(const Storage& storage, const std::function<void(size_t, size_t)>& visit) {
  size_t rows = 1;
  for (size_t d = 0; d + 1 < storage.used.size(); ++d) rows *= static_cast<size_t>(storage.used[d]);
  for (size_t row = 0; row < rows; ++row) {
    size_t rest = row, place = 0;
    for (size_t d = storage.used.size() - 1; d-- > 0;) {
      const auto size = static_cast<size_t>(storage.used[d]);
      place += rest % size * static_cast<size_t>(storage.strides[d]);
      rest /= size;
    }
    visit(row * static_cast<size_t>(storage.used.back()), place);
  }
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
    const size_t element = size_of(argument.dtype), rank = argument.shape.size();
    storage.used = is_integer(argument.dtype) ? inputs_[i].tensor.shape : shape_of(argument);
    storage.shape = storage.used;
    if (argument.shape[0].is_jagged()) storage.shape[0] += extra_rows_;
    storage.strides.assign(rank, 1);
    int64_t span = storage.shape[rank - 1] + (rank == 4 ? row_padding_ : 0);
    for (size_t d = rank - 1; d-- > 0;) {
      if (d == 0) span += row_padding_;
      storage.strides[d] = span;
      span *= storage.shape[d];
    }
    storage.bytes.assign(static_cast<size_t>(span) * element, kUntouched);
    if (argument.role == ArgumentRole::kInput) {
      const std::vector<std::byte> dense = pack(inputs_[i].tensor, argument.dtype);
      const size_t row = static_cast<size_t>(storage.used.back()) * element;
      for_each_row(storage, [&](size_t from, size_t to) {
        std::memcpy(storage.bytes.data() + to * element, dense.data() + from * element, row);
      });
    }
    value.data = storage.bytes.data();
    value.shape = storage.shape.data();
    value.strides = storage.strides.data();
    value.rank = static_cast<int>(rank);
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
  const size_t element = size_of(dtype), row = static_cast<size_t>(storage.used.back()) * element;
  size_t elements = 1;
  for (const int64_t size : storage.used) elements *= static_cast<size_t>(size);
  std::vector<std::byte> dense(elements * element);
  for_each_row(storage, [&](size_t to, size_t from) {
    std::memcpy(dense.data() + to * element, storage.bytes.data() + from * element, row);
  });
  return unpack(dense, dtype, storage.used);
}

const std::vector<std::byte>& HostCall::bytes(std::string_view name) const { return storage_[index(name)].bytes; }
HstujitHostValue& HostCall::value(std::string_view name) { return values_[index(name)]; }

}  // namespace hstujit
