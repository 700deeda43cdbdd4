// Dimensions that are a multiple of a symbol, which no operator of the build has yet, or of an integer argument.
#include "compiler/host/arguments.h"

#include <gtest/gtest.h>

#include <limits>

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

// q has as many rows of each sequence as max_delta_len says, which stands behind it.
Result<Arguments> bind_uniform(int64_t rows, int64_t counts, int64_t max_delta_len) {
  static const Signature signature = [] {
    Argument max;
    max.name = "max_delta_len";
    max.kind = ArgumentKind::kInt;
    return Signature{integers("q", Dimension::uniform("max_delta_len")), integers("counts", Dimension::of("B", 1)),
                     max};
  }();
  alignas(16) static int32_t data[64] = {};
  static const int64_t stride = 1;
  const HstujitHostValue values[] = {{data, &rows, &stride, 1, 0, 0},
                                     {data, &counts, &stride, 1, 0, 0},
                                     {nullptr, nullptr, nullptr, 0, 0, max_delta_len}};
  return Arguments::bind(signature, values, 3);
}

TEST(HostArguments, AUniformAxisHasAsManyRowsOfEachSequence) {
  const auto arguments = bind_uniform(12, 4, 4);
  ASSERT_TRUE(arguments.ok()) << arguments.status().message();
  EXPECT_EQ(arguments->symbol("B"), 3);
  EXPECT_EQ(arguments->size("q", 0), 12);
  EXPECT_TRUE(bind_uniform(0, 4, 0).ok());
  EXPECT_TRUE(bind_uniform(0, 1, 7).ok()) << "no sequences";
}

TEST(HostArguments, ASizeThatIsNotThatOfAUniformAxisIsNamed) {
  EXPECT_EQ(bind_uniform(13, 4, 4).status().message(),
            "q has size 13 along axis 0; it must be B*max_delta_len, with 3 sequences and max_delta_len = 4");
  EXPECT_EQ(bind_uniform(12, 4, -4).status().message(),
            "q has size 12 along axis 0; it must be B*max_delta_len, with 3 sequences and max_delta_len = -4");
  EXPECT_FALSE(bind_uniform(12, 4, std::numeric_limits<int64_t>::max()).ok()) << "no integer counts it";
  EXPECT_FALSE(bind_uniform(-3, 4, -1).ok());
}

}  // namespace
}  // namespace hstujit
