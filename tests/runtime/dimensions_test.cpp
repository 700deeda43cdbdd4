// Dimensions that are a multiple of a symbol, which no operator of the build has yet, and ranges of real arguments.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/launch/arguments.h"

namespace hstujit {
namespace {

// counts (B+1) and deltas (4*B).
class Dimensions : public ::testing::Test {
 protected:
  static Argument integers(const char* name, Dimension size) {
    Argument argument;
    argument.name = name;
    argument.dtype = DataType::kInt32;
    argument.shape = {std::move(size)};
    return argument;
  }

  // The sentence about tensors of these sizes; empty when they are right.
  std::string check(const Signature& signature, std::vector<int64_t> sizes) {
    const Result<ArgumentChecker> checker = ArgumentChecker::create(signature);
    alignas(16) int32_t data[64] = {};
    std::vector<DLTensor> tensors(sizes.size());
    std::vector<hstujit_value> values(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      tensors[i].data = data;
      tensors[i].device = {kDLCPU, 0};
      tensors[i].ndim = 1;
      tensors[i].dtype = {kDLInt, 32, 1};
      tensors[i].shape = &sizes[i];
      values[i].tensor = &tensors[i];
    }
    const Placement placement{.on_device = false};
    bool nothing = false;
    const ArgumentFailure failure = checker->check(values.data(), values.size(), placement, &nothing);
    return checker->explain(failure, values.data(), placement).message();
  }

  const Argument counts_ = integers("counts", Dimension::of("B", 1));
  const Argument deltas_ = integers("deltas", {"B", 4, 0});
};

TEST_F(Dimensions, ASymbolBoundByOneHoldsForTheOther) {
  EXPECT_EQ(check({counts_, deltas_}, {4, 12}), "");
  EXPECT_EQ(check({deltas_, counts_}, {12, 4}), "");
  EXPECT_EQ(check({counts_, deltas_}, {4, 11}), "deltas.shape[0] is 11; it must be 4*B = 12, as in counts");
  EXPECT_EQ(check({deltas_, counts_}, {12, 5}), "counts.shape[0] is 5; it must be B+1 = 4, as in deltas");
}

TEST_F(Dimensions, AFactorThatMakesTheSizeOverflow) {
  const Argument huge = integers("huge", {"B", int64_t{1} << 62, 0});
  EXPECT_EQ(check({counts_, huge}, {5, 0}),
            "huge.shape[0] is 0; it must be 4611686018427387904*B = 9223372036854775807, as in counts")
      << "4 * 2^62 is no 0";
}

TEST_F(Dimensions, ASizeThatNoSymbolGives) {
  EXPECT_EQ(check({deltas_, counts_}, {6, 4}), "deltas.shape[0] is 6; it must be 4*B, shape (4*B)");
  EXPECT_EQ(check({counts_, deltas_}, {0, 0}), "counts.shape[0] is 0; it must be B+1, at least 1, shape (B+1)");
}

// The sentence about one real argument of this value.
std::string check_real(RealRange range, double value) {
  Argument ratio;
  ratio.name = "ratio";
  ratio.kind = ArgumentKind::kFloat;
  ratio.range = range;
  const Result<ArgumentChecker> checker = ArgumentChecker::create({ratio});
  hstujit_value values[1] = {};
  values[0].real = value;
  const Placement placement{.on_device = false};
  bool nothing = false;
  return checker->explain(checker->check(values, 1, placement, &nothing), values, placement).message();
}

TEST(RealArguments, AreHeldToTheirRange) {
  for (const double value : {0.0, -0.0, 0.5, 1.0}) EXPECT_EQ(check_real({0, 1}, value), "");
  EXPECT_EQ(check_real({0, 1}, 1.5), "ratio is 1.5; it must be from 0 to 1");
  EXPECT_EQ(check_real({0, 1}, -1e-30), "ratio is -1e-30; it must be from 0 to 1");
  EXPECT_EQ(check_real(kNotNegative, -1), "ratio is -1; it must be at least 0");
  EXPECT_EQ(check_real(kNotNegative, 1e30), "");
  EXPECT_EQ(check_real({-INFINITY, 2}, 3), "ratio is 3; it must be at most 2");
  EXPECT_EQ(check_real({}, -1e30), "");
  EXPECT_EQ(check_real({0, 1}, NAN), "ratio is nan; it must be a finite number of fp32");
}

}  // namespace
}  // namespace hstujit
