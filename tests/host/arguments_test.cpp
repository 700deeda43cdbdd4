// Dimensions that are a multiple of a symbol, which no operator of the build has yet.
#include "compiler/host/arguments.h"

#include <gtest/gtest.h>

namespace hstujit {
namespace {

Argument integers(const char* name, Dimension size) {
  Argument argument;
  argument.name = name;
  argument.dtype = DataType::kInt32;
  argument.shape = {std::move(size)};
  return argument;
}

const Signature kSignature = {integers("deltas", {"B", 4, 0}), integers("counts", Dimension::of("B", 1))};

Result<Arguments> bind(int64_t deltas, int64_t counts) {
  alignas(16) static int32_t data[64] = {};
  static const int64_t stride = 1;
  const HstujitHostValue values[] = {{data, &deltas, &stride, 1, 0, 0}, {data, &counts, &stride, 1, 0, 0}};
  return Arguments::bind(kSignature, values, 2);
}

TEST(HostArguments, ASymbolFollowsFromItsMultiple) {
  const auto arguments = bind(12, 4);
  ASSERT_TRUE(arguments.ok()) << arguments.status().message();
  EXPECT_EQ(arguments->symbol("B"), 3);
}

TEST(HostArguments, SizesThatDoNotFitAreNamed) {
  EXPECT_EQ(bind(6, 4).status().message(), "deltas has size 6 along axis 0; it must be 4*B");
  EXPECT_EQ(bind(12, 5).status().message(),
            "counts has size 5 along axis 0; it must be B+1 = 4, as in the arguments before it");
}

}  // namespace
}  // namespace hstujit
