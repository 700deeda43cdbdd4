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

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    if (!std::isfinite(a[i])) return std::numeric_limits<double>::infinity();
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
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
    if (argument.shape.size() == 1) {
      storage.shape = inputs_[i].tensor.shape;
      storage.strides = {1};
      storage.bytes = pack(inputs_[i].tensor, argument.dtype);
    } else {
      const int64_t heads = argument.shape[1].bias, width = argument.shape[2].bias;
      const int64_t used = rows_of(argument), rows = used + (argument.shape[0].is_jagged() ? extra_rows_ : 0);
      storage.shape = {rows, heads, width};
      storage.strides = {heads * width + row_padding_, width, 1};
      const auto row = static_cast<size_t>(storage.strides[0]) * element;
      storage.bytes.assign(static_cast<size_t>(rows) * row, kUntouched);
      if (argument.role == ArgumentRole::kInput) {
        const std::vector<std::byte> dense = pack(inputs_[i].tensor, argument.dtype);
        const auto dense_row = static_cast<size_t>(heads * width) * element;
        for (size_t r = 0; r < static_cast<size_t>(used); ++r) {
          std::memcpy(storage.bytes.data() + r * row, dense.data() + r * dense_row, dense_row);
        }
      }
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
  const auto dense_row = static_cast<size_t>(storage.shape[1] * storage.shape[2]) * element;
  const auto row = static_cast<size_t>(storage.strides[0]) * element;
  const int64_t rows = rows_of(signature_[index(name)]);
  std::vector<std::byte> dense(static_cast<size_t>(rows) * dense_row);
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    std::memcpy(dense.data() + r * dense_row, storage.bytes.data() + r * row, dense_row);
  }
  return unpack(dense, dtype, {rows, storage.shape[1], storage.shape[2]});
}

const std::vector<std::byte>& HostCall::bytes(std::string_view name) const { return storage_[index(name)].bytes; }
HstujitHostValue& HostCall::value(std::string_view name) { return values_[index(name)]; }

}  // namespace hstujit
