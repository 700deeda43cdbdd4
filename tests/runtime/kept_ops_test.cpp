// The ops that a context keeps for its calls.
#include "runtime/capi/kept_ops.h"

#include <gtest/gtest.h>

#include "runtime/capi/boundary.h"

namespace hstujit::capi {
namespace {

OpOptions options_of(int64_t width) {
  OpOptions options;
  options.instance.spec = *parse_op_spec({{"op", "silu"}, {"width", width}}, "silu");
  options.backend = Backend::kHost;
  return options;
}

SharedOp get(KeptOps& ops, int64_t width) { return *ops.get(std::to_string(width), nullptr, options_of(width)); }

TEST(KeptOps, OneKeyHasOneOp) {
  KeptOps ops;
  const SharedOp op = get(ops, 8);
  EXPECT_EQ(get(ops, 8), op);
  EXPECT_NE(get(ops, 16), op);
}

TEST(KeptOps, TheLeastRecentlyUsedOneIsForgotten) {
  KeptOps ops;
  const std::weak_ptr<hstujit_op> first = get(ops, 1), second = get(ops, 2);
  for (int64_t width = 3; width <= static_cast<int64_t>(KeptOps::kMost); ++width) get(ops, width);
  get(ops, 1);
  get(ops, static_cast<int64_t>(KeptOps::kMost) + 1);
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
}

TEST(KeptOps, ACallKeepsAnOpThatIsForgotten) {
  KeptOps ops;
  const SharedOp used = get(ops, 1);
  for (int64_t width = 2; width <= static_cast<int64_t>(KeptOps::kMost) + 1; ++width) get(ops, width);
  EXPECT_EQ(used.use_count(), 1);
  EXPECT_NE(get(ops, 1), used);
}

}  // namespace
}  // namespace hstujit::capi
