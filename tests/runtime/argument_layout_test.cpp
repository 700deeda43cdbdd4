// The checker of launch values by itself: signatures that it has no room for, layouts that must not be written to.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/arguments.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

Argument tensor_argument(const char* name, ArgumentRole role, std::vector<Dimension> shape) {
  Argument argument;
  argument.name = name;
  argument.role = role;
  argument.dtype = DataType::kFp32;
  argument.shape = std::move(shape);
  return argument;
}

// Tensors of rank 3 over memory that nobody touches.
class Layouts : public ::testing::Test {
 protected:
  Layouts() {
    for (size_t i = 0; i < 3; ++i) {
      tensors_[i].data = reinterpret_cast<void*>((i + 1) << 20);
      tensors_[i].device = {kDLCUDA, 0};
      tensors_[i].ndim = 3;
      tensors_[i].dtype = {kDLFloat, 32, 1};
      tensors_[i].shape = shape_;
      values_[i].tensor = &tensors_[i];
    }
  }

  std::string refusal() {
    bool nothing = false;
    const ArgumentFailure failure = checker_->check(values_, 3, {}, &nothing);
    return checker_->explain(failure, values_, {}).message();
  }

  static Signature signature() {
    const std::vector<Dimension> shape = {Dimension{"L"}, Dimension{"H"}, Dimension{"D"}};
    return {tensor_argument("x", ArgumentRole::kInput, shape), tensor_argument("y", ArgumentRole::kOutput, shape),
            tensor_argument("z", ArgumentRole::kOutput, shape)};
  }

  Result<ArgumentChecker> checker_ = ArgumentChecker::create(signature());
  int64_t shape_[3] = {5, 2, 8};
  int64_t strides_[3] = {16, 8, 1};
  DLTensor tensors_[3] = {};
  hstujit_value values_[3] = {};
};

TEST_F(Layouts, SlicesAndTransposedOutputsAreTaken) {
  EXPECT_EQ(refusal(), "");
  tensors_[1].strides = strides_;
  EXPECT_EQ(refusal(), "");
  strides_[0] = 100;
  EXPECT_EQ(refusal(), "");
  strides_[0] = 8;
  strides_[1] = 40;
  EXPECT_EQ(refusal(), "") << "heads outside rows";
}

TEST_F(Layouts, InputsMayRepeatRowsAndOutputsMayNot) {
  strides_[0] = 0;
  tensors_[0].strides = strides_;
  EXPECT_EQ(refusal(), "");
  tensors_[1].strides = strides_;
  EXPECT_EQ(refusal(), "y.strides[0] is 0; it must be 1 or more, since elements of an output must not overlap");
  strides_[0] = 12;
  EXPECT_EQ(refusal(), "y.strides[0] is 12; it must be 16 or more, since elements of an output must not overlap");
  strides_[0] = 16;
  strides_[1] = 4;
  EXPECT_EQ(refusal(), "y.strides[1] is 4; it must be 8 or more, since elements of an output must not overlap");
  shape_[1] = 1;
  EXPECT_EQ(refusal(), "") << "the stride of one head is never used";
}

TEST_F(Layouts, TwoOutputsAtOneAddressAreRefused) {
  tensors_[2].data = tensors_[1].data;
  EXPECT_THAT(refusal(), HasSubstr("z begins at address"));
  EXPECT_THAT(refusal(), HasSubstr("as y does; outputs must not overlap"));
  shape_[0] = 0;
  EXPECT_EQ(refusal(), "") << "empty ones are written by nobody";
}

TEST_F(Layouts, SpansThatNoIntegerCountsAreRefused) {
  tensors_[0].strides = strides_;
  strides_[0] = kHuge;
  EXPECT_THAT(refusal(), HasSubstr("x has a size or stride of 9223372036854775807 in dimension 0"));
  strides_[0] = kHuge / 8;
  EXPECT_THAT(refusal(), HasSubstr("a tensor may span less than 2^63 bytes"));
  tensors_[0].strides = nullptr;
  shape_[0] = kHuge / 8;
  EXPECT_THAT(refusal(), HasSubstr("x has a size or stride of 8 in dimension 2"));
}

TEST(ArgumentCheckerRoom, TooManyDimensionsOrSymbolsAreSentences) {
  const Result<ArgumentChecker> deep =
      ArgumentChecker::create({tensor_argument("x", ArgumentRole::kInput, std::vector<Dimension>(9, Dimension{"N"}))});
  EXPECT_EQ(deep.status().code(), Code::kUnsupported);
  EXPECT_THAT(deep.status().message(), HasSubstr("x has rank 9"));
  Signature many;
  for (int i = 0; i < 17; ++i) {
    many.push_back(tensor_argument("x", ArgumentRole::kInput, {Dimension{fmt::format("N{}", i)}}));
  }
  EXPECT_THAT(ArgumentChecker::create(many).status().message(), HasSubstr("x has the size N16, symbol number 17"));
  many.pop_back();
  EXPECT_TRUE(ArgumentChecker::create(many).ok());
}

}  // namespace
}  // namespace hstujit
