// Arguments of a launch, checked against the operator's signature.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/host/host_api.h"
#include "compiler/spec/signature.h"
#include "compiler/support/status.h"

namespace hstujit {

class Arguments {
 public:
  // Checks count, rank, shape, strides, null pointers and the bounds of integers. Keeps references to both; it lives as
  // long as one launch.
  static Result<Arguments> bind(const Signature& signature, const HstujitHostValue* values, size_t count);

  const Signature& signature() const { return *signature_; }
  const HstujitHostValue& at(size_t index) const { return values_[index]; }

  bool has(std::string_view name) const { return find_argument(*signature_, name) >= 0; }
  void* data(std::string_view name) const { return find(name).data; }
  // The size of a tensor along one axis.
  int64_t size(std::string_view name, size_t axis) const { return find(name).shape[axis]; }
  // Elements from one position of that axis to the next.
  int64_t stride(std::string_view name, size_t axis) const { return find(name).strides[axis]; }
  // The value of a dimension's symbol, such as "L".
  int64_t symbol(const std::string& name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  // One element of an int32 or int64 tensor of rank 1.
  int64_t element(std::string_view name, int64_t index) const;

 private:
  Arguments(const Signature& signature, const HstujitHostValue* values) : signature_(&signature), values_(values) {}
  Status bind_tensor(const Argument& argument, const HstujitHostValue& value);
  Status check_integer_axis(const Argument& argument, size_t axis, const HstujitHostValue& value) const;
  Status bind_dimension(const Argument& argument, size_t axis, int64_t size);
  const HstujitHostValue& find(std::string_view name) const;

  const Signature* signature_;
  const HstujitHostValue* values_;
  std::map<std::string, int64_t> symbols_;
};

// Where the rows of each sequence begin in a tensor of so many rows, and where the last ones end. Offsets that decrease
// or pass the end are brought back, so that sequences lie within the tensor and do not overlap.
std::vector<int64_t> clamped_offsets(const Arguments& arguments, std::string_view name, int64_t sequences,
                                     int64_t rows);

}  // namespace hstujit
