// The lengths that a candidate is validated on.
#include "runtime/tuning/adversarial_lengths.h"

#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

TEST(AdversarialLengths, CoverTilesAndStayWithinTheLimit) {
  const auto spec =
      parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 64}, {"hidden_dim", 64}, {"num_targets", true}}, "");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const Lengths lengths = adversarial_lengths(**spec, Direction::kForward, 300, 1);
  EXPECT_THAT(lengths.rows, ::testing::IsSupersetOf({0, 1, 63, 64, 65, 127, 128, 129, 300}));
  ASSERT_EQ(lengths.num_targets.size(), lengths.rows.size());
  for (size_t i = 0; i < lengths.rows.size(); ++i) {
    EXPECT_LE(lengths.rows[i], 300);
    EXPECT_LE(lengths.num_targets[i], lengths.rows[i]);
  }
}

}  // namespace
}  // namespace hstujit::test
