// rms_norm: rows over their root mean square (docs/ops.md, "rms_norm").
#pragma once

#include <tuple>

#include "compiler/spec/row_spec.h"

namespace hstujit {

struct RmsNormParams : RowParams {
  bool weight = true;
  bool silu = false;

  bool operator==(const RmsNormParams&) const = default;

  static constexpr auto fields() {
    using P = RmsNormParams;
    return std::tuple_cat(fields_of<P>(),
                          std::make_tuple(field("weight", &P::weight, "takes a weight, a factor of each column"),
                                          field("silu", &P::silu, "applies silu to the result")));
  }
};

// Forward: x (L,D), [weight (D)], eps (float), out (L,D). Backward: x, dout (L,D), [weight], eps, dx (L,D),
// [dweight (D)].
class RmsNormSpec final : public RowSpec {
 public:
  explicit RmsNormSpec(RmsNormParams params) : params_(std::move(params)) {}

  const RmsNormParams& params() const { return params_; }
  std::string_view op() const override { return "rms_norm"; }
  nlohmann::ordered_json to_json() const override;
  int64_t alignment() const override { return params_.alignment; }
  double operations(Direction direction) const override;

 protected:
  RowInterface forward_interface() const override;
  void reference_row(Direction direction, ReferenceRow& row) const override;

 private:
  RmsNormParams params_;
};

}  // namespace hstujit
