// Dropout of attention's weights on the host, against the float64 reference of the spec.
#include <gtest/gtest.h>

#include "tests/host/attention_cases.h"
#include "tests/host/host_call.h"

namespace hstujit {
namespace {

void expect_agreement(const Json& changes, Direction direction) {
  const Json json = with(with(base_spec(), {{"dropout", true}, {"attn_dim", 16}, {"hidden_dim", 24}}), changes);
  SCOPED_TRACE(json.dump());
  const Lengths lengths{
      .rows = {0, 1, 5, 129, 0, 33, 257, 3}, .num_targets = {0, 1, 2, 100, 0, 33, 9, 1}, .max_seq_len = 261};
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2, direction);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  HostCall call(spec, lengths, 7, 0, direction);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.mistakes(), "");
}

TEST(HostDropout, Attention) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    expect_agreement(Json::object(), direction);
    expect_agreement({{"seed_tensor", true}, {"num_targets", true}, {"max_attn_len", 20}}, direction);
    expect_agreement({{"rab_heads", 1}, {"attn_scale", "rows"}}, direction);
    expect_agreement({{"attn_scale", "scalar"}, {"dtype", "fp32"}}, direction);
    expect_agreement({{"heads", 4}, {"num_softmax_heads", 3}, {"rab_heads", 2}, {"attn_scale", "rows"}}, direction);
    expect_agreement({{"operands", "w: row(grad), pos: table(99, grad), gain: scalar(grad)"},
                      {"score", "silu(x * w[row] + w[col] + pos[col - row + 49] + gain)"},
                      {"attn_scale", "rows"}},
                     direction);
  }
}

}  // namespace
}  // namespace hstujit
