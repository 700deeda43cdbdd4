// Operators of the row family whose rows are those of sequences: parameters, arguments and what their specs share.
//
//   class DenseToJaggedSpec final : public SequenceOperator<SequenceParams> { ... };
//   OpSpecPtr parse_dense_to_jagged(const Json& json, const std::string& path, Mistakes& mistakes) {
//     return parse_row_operator<DenseToJaggedSpec>(json, path, mistakes);
//   }
//
// An operator that only moves rows has no backward kernel: its gradient is another operator's forward direction, on
// gradients (gradient_by). Others have one, derived as that of every row operator.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "compiler/spec/gradient_program.h"
#include "compiler/spec/row_operator.h"
#include "compiler/spec/sequence_arguments.h"

namespace hstujit {

// The fields that they begin with, in this order:
//   width, dtype, alignment, offsets_dtype
struct SequenceParams : RowParams {
  DataType offsets_dtype = DataType::kInt64;

  bool operator==(const SequenceParams&) const = default;

  template <typename P>
  static constexpr auto fields_of() {
    return std::make_tuple(
        field("width", &P::width, "elements of a row", 1, kMaxWidth),
        field("dtype", &P::dtype, "data type of rows").one_of("bf16 fp16 fp32"),
        field("alignment", &P::alignment, "bytes that data pointers and strides are multiples of").one_of("2 4 8 16"),
        field("offsets_dtype", &P::offsets_dtype, "type of offsets and counts").one_of("int32 int64"));
  }
  static constexpr auto fields() { return fields_of<SequenceParams>(); }
};

// For generated calls: as many rows as every sequence has on the uniform axis; 0 where there is no sequence.
HostValue uniform_rows(const Lengths& lengths);

class SequenceSpec : public WithGradientProgram<RowSpec> {
 public:
  bool supports(Direction direction) const override {
    return direction == Direction::kForward || has_backward_kernel() || has_gradient();
  }

 protected:
  // Whether there is a backward kernel; a gradient that is another operator's counts besides.
  virtual bool has_backward_kernel() const { return false; }
};

template <typename P>
class SequenceOperator : public SequenceSpec {
 public:
  using Params = P;

  SequenceOperator(std::string_view op, P params) : op_(op), params_(std::move(params)) {}

  const P& params() const { return params_; }
  std::string_view op() const final { return op_; }
  int64_t alignment() const final { return params_.alignment; }
  Json to_json() const final { return operator_json(op_, params_); }

 protected:
  std::string_view op_;
  P params_;
};

}  // namespace hstujit
