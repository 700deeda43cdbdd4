// What float64 references of operators over rows of sequences read and write: rows and integers of a call by name.
#pragma once

#include <cassert>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/spec/op_spec.h"

namespace hstujit {

class SequenceReference {
 public:
  SequenceReference(const OpSpec& spec, Direction direction, std::vector<HostValue>& values)
      : signature_(spec.signature(direction)), values_(values) {}

  // Of zeros.
  void resize(std::string_view output, int64_t rows, int64_t width) {
    HostTensor& tensor = value(output).tensor;
    tensor.shape = {rows, width};
    tensor.reals.assign(static_cast<size_t>(rows * width), 0);
  }
  std::span<double> row(std::string_view name, int64_t row) {
    HostTensor& tensor = value(name).tensor;
    const auto width = static_cast<size_t>(tensor.shape[1]);
    return std::span(tensor.reals).subspan(static_cast<size_t>(row) * width, width);
  }
  int64_t rows(std::string_view name) { return value(name).tensor.shape[0]; }
  int64_t element(std::string_view name, int64_t index) {
    return value(name).tensor.integers[static_cast<size_t>(index)];
  }
  int64_t integer(std::string_view name) { return static_cast<int64_t>(value(name).scalar); }
  double real(std::string_view name) { return value(name).scalar; }

 private:
  HostValue& value(std::string_view name) {
    const int index = find_argument(signature_, name);
    assert(index >= 0);
    return values_[static_cast<size_t>(index)];
  }

  const Signature signature_;
  std::vector<HostValue>& values_;
};

}  // namespace hstujit
