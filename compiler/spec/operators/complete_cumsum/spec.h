// complete_cumsum: where sequences begin whose lengths are known (docs/ops-serving.md, "complete_cumsum").
#pragma once

#include "compiler/spec/fields_json.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

struct CompleteCumsumParams {
  DataType dtype = DataType::kInt64;

  static constexpr auto fields() {
    return std::make_tuple(
        field("dtype", &CompleteCumsumParams::dtype, "type of lengths and offsets").one_of("int32 int64"));
  }
};

// Forward: lengths (L), offsets (L+1). Of a problem without sequences: its rows are the lengths.
class CompleteCumsumSpec final : public OpSpec {
 public:
  explicit CompleteCumsumSpec(CompleteCumsumParams params) : params_(params) {}

  std::string_view op() const override { return "complete_cumsum"; }
  Family family() const override { return Family::kScan; }
  Json to_json() const override { return operator_json(op(), params_); }
  bool supports(Direction direction) const override { return direction == Direction::kForward; }
  Signature signature(Direction direction) const override;
  Work work(Direction direction, const Lengths& lengths) const override;
  double error_bound(Direction) const override { return 0; }
  DataType dtype() const { return params_.dtype; }

 private:
  const CompleteCumsumParams params_;
};

}  // namespace hstujit
