#include "compiler/spec/signature.h"

#include <gtest/gtest.h>

namespace hstujit {
namespace {

TEST(Dimension, IsPrintedAsAFormula) {
  EXPECT_EQ(to_string(Dimension::constant(64)), "64");
  EXPECT_EQ(to_string(Dimension::of("L")), "L");
  EXPECT_EQ(to_string(Dimension::of("B", 1)), "B+1");
  EXPECT_EQ(to_string(Dimension{.symbol = "B", .factor = 4}), "4*B");
  EXPECT_EQ(to_string(Dimension{.symbol = "M", .factor = 2, .bias = -1}), "2*M-1");
}

TEST(Dimension, SizeAndValueAreInverse) {
  for (const Dimension& dimension :
       {Dimension::of("L"), Dimension::of("B", 1), Dimension{"B", 4, 0}, Dimension{"M", 3, 2}}) {
    for (const int64_t value : {0, 1, 7}) EXPECT_EQ(dimension.symbol_value(dimension.size(value)), value);
  }
}

TEST(Dimension, SizesThatNoValueGives) {
  EXPECT_FALSE(Dimension::of("B", 1).symbol_value(0));
  EXPECT_FALSE((Dimension{"B", 4, 0}).symbol_value(6));
  EXPECT_FALSE((Dimension{"M", 3, 2}).symbol_value(1));
  EXPECT_FALSE((Dimension{"M", 3, 2}).symbol_value(6));
  EXPECT_FALSE(Dimension::constant(8).symbol_value(9));
  EXPECT_FALSE(Dimension::constant(8).symbol_value(7));
  EXPECT_EQ(Dimension::constant(8).symbol_value(8), 0);
}

TEST(Dimension, IsOnlyTheBareSymbol) {
  EXPECT_TRUE(Dimension::of("L").is("L"));
  EXPECT_FALSE(Dimension::of("L", 1).is("L"));
  EXPECT_FALSE((Dimension{"L", 2, 0}).is("L"));
  EXPECT_FALSE(Dimension::constant(3).is("L"));
}

}  // namespace
}  // namespace hstujit
