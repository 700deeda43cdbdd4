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

TEST(Dimension, JaggedAndUniformAxesHoldTheRowsOfSequences) {
  const Dimension jagged = Dimension::jagged("Lq", "seq_offsets_q"), uniform = Dimension::uniform("max_delta_len");
  EXPECT_TRUE(jagged.is_jagged() && !jagged.is_uniform() && !jagged.is_constant());
  EXPECT_TRUE(uniform.is_uniform() && !uniform.is_jagged() && !uniform.is_constant());
  EXPECT_FALSE(Dimension::of("L").is_jagged() || Dimension::of("L").is_uniform());
  EXPECT_EQ(to_string(jagged), "Lq");
  EXPECT_EQ(to_string(uniform), "B*max_delta_len");
}

TEST(Dimension, AScalarAxisIsAsLongAsAnIntegerSays) {
  const Dimension scalar = Dimension::scalar("max_seq_len");
  EXPECT_TRUE(scalar.is_scalar() && scalar.follows_integer());
  EXPECT_FALSE(scalar.is_constant() || scalar.is_uniform() || scalar.is_jagged());
  EXPECT_FALSE(Dimension::constant(1).is_scalar() || Dimension::uniform("max_seq_len").is_scalar());
  EXPECT_EQ(to_string(scalar), "max_seq_len");
  EXPECT_EQ(scalar.integer_size(0, 64), 64);
  EXPECT_EQ(scalar.integer_size(7, 64), 64);
  EXPECT_EQ(scalar.integer_size(0, 0), 0);
  EXPECT_FALSE(scalar.integer_size(0, -1));
}

TEST(Dimension, TheSizeOfAUniformAxisIsAnIntegerOrNone) {
  const Dimension uniform = Dimension::uniform("max_delta_len");
  EXPECT_EQ(uniform.integer_size(3, 64), 192);
  EXPECT_EQ(uniform.integer_size(0, 64), 0);
  EXPECT_EQ(uniform.integer_size(3, 0), 0);
  EXPECT_FALSE(uniform.integer_size(3, -1));
  EXPECT_FALSE(uniform.integer_size(3, std::numeric_limits<int64_t>::max()));
}

TEST(Signature, AShapeIsPrintedAsATuple) {
  Argument argument;
  argument.shape = {Dimension::of("L"), Dimension::constant(4), Dimension::of("B", 1)};
  EXPECT_EQ(shape_text(argument), "(L, 4, B+1)");
  EXPECT_EQ(shape_text(Argument()), "()");
}

}  // namespace
}  // namespace hstujit
