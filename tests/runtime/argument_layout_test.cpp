// The checker of launch values by itself: signatures that it has no room for, layouts that must not be written to.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "compiler/spec/limits.h"
#include "runtime/launch/arguments.h"

namespace hstujit {
namespace {

using ::testing::AllOf;
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

TEST_F(Layouts, OutputsThatShareMemoryAreRefused) {
  const std::string sentence = "an output must share no element with another tensor";
  for (const int other : {0, 1}) {
    void* const data = tensors_[2].data;
    char* const begin = static_cast<char*>(tensors_[other].data);
    const int64_t span = 5 * 2 * 8 * 4;
    for (const int64_t distance : {int64_t{0}, int64_t{32}, span - 16, 16 - span}) {
      tensors_[2].data = begin + distance;
      EXPECT_THAT(refusal(), HasSubstr("z spans 320 bytes at ")) << distance;
      EXPECT_THAT(refusal(), HasSubstr(other == 0 ? "and x spans 320 at" : "and y spans 320 at")) << distance;
      EXPECT_THAT(refusal(), HasSubstr(sentence)) << distance;
    }
    tensors_[2].data = begin + span;
    EXPECT_EQ(refusal(), "") << "right behind it";
    tensors_[2].data = data;
  }
}

TEST_F(Layouts, AnOutputMayBeTheInputThatItIsComputedFrom) {
  Signature signed_in_place = signature();
  signed_in_place[1].in_place = "x";
  checker_ = ArgumentChecker::create(signed_in_place);
  char* const x = static_cast<char*>(tensors_[0].data);
  tensors_[1].data = x;
  EXPECT_EQ(refusal(), "");
  tensors_[1].data = x + 32;
  EXPECT_THAT(refusal(),
              HasSubstr("an output must share no element with another tensor, unless all of y is in the place of x"));
  tensors_[1].data = x;
  tensors_[1].strides = strides_;
  strides_[0] = 32;
  EXPECT_THAT(refusal(), HasSubstr("unless all of y is in the place of x")) << "its rows do not";
  strides_[0] = 16;
  EXPECT_EQ(refusal(), "");
  tensors_[2].data = x;
  EXPECT_THAT(refusal(), HasSubstr("must share no element")) << "z is no such output";
}

// Slices of one matrix of (L, 3 * H * D) or (L, H, 3 * D): they interleave and have no element in common.
TEST_F(Layouts, SlicesOfOneMatrixDoNotOverlap) {
  char* const begin = static_cast<char*>(tensors_[0].data);
  for (const bool by_head : {false, true}) {
    strides_[0] = 3 * 2 * 8;
    strides_[1] = by_head ? 3 * 8 : 8;
    const int64_t columns = by_head ? 8 : 2 * 8;
    for (int i = 0; i < 3; ++i) {
      tensors_[i].strides = strides_;
      tensors_[i].data = begin + i * columns * 4;
    }
    EXPECT_EQ(refusal(), "") << by_head;
    std::swap(tensors_[0].data, tensors_[2].data);
    EXPECT_EQ(refusal(), "") << by_head;
    tensors_[2].data = begin + columns * 4;
    EXPECT_THAT(refusal(), HasSubstr("must share no element")) << "the slice of y";
    tensors_[2].data = begin + columns * 4 + 2 * strides_[0] * 4;
    EXPECT_THAT(refusal(), HasSubstr("must share no element")) << "two rows further down in it";
    tensors_[2].data = begin + columns * 4 + 5 * strides_[0] * 4;
    EXPECT_EQ(refusal(), "") << "below its rows";
  }
}

TEST_F(Layouts, EmptyOutputsShareNothing) {
  tensors_[2].data = tensors_[1].data;
  shape_[0] = 0;
  EXPECT_EQ(refusal(), "") << "empty ones are written by nobody";
}

TEST_F(Layouts, SpansThatNoIntegerCountsAreRefused) {
  tensors_[0].strides = strides_;
  strides_[0] = kHuge;
  EXPECT_THAT(refusal(), HasSubstr("x has shape (5, 2, 8) and strides (9223372036854775807, "));
  strides_[0] = kHuge / 8;
  EXPECT_THAT(refusal(), HasSubstr("a tensor may span less than 2^63 bytes"));
  tensors_[0].strides = nullptr;
  shape_[0] = kHuge / 8;
  EXPECT_THAT(refusal(), HasSubstr("x has shape (1152921504606846975, 2, 8); a tensor may span less than 2^63 bytes"));
}

TEST_F(Layouts, OffsetsThatLeadOutOfMemoryAreRefused) {
  const auto address = reinterpret_cast<uint64_t>(tensors_[0].data);
  // Before what data points to, at the very end of what a pointer counts, and beyond what an int64_t does.
  for (const uint64_t offset : {uint64_t{0} - 16, uint64_t{0} - address, uint64_t{0} - address - 16,
                                kHuge - address + 1, kHuge - address + 1 - 5 * 2 * 8 * 4 + 16}) {
    tensors_[0].byte_offset = offset;
    EXPECT_THAT(refusal(), AllOf(HasSubstr(fmt::format("byte_offset {};", offset)),
                                 HasSubstr("a tensor must end below address 2^63")));
  }
  tensors_[0].byte_offset = 16;
  EXPECT_EQ(refusal(), "");
}

TEST(ArgumentCheckerRoom, MoreSequencesThanKernelsCountAreRefused) {
  const Result<ArgumentChecker> checker =
      ArgumentChecker::create({tensor_argument("counts", ArgumentRole::kInput, {Dimension::of("B", 1)})});
  ASSERT_TRUE(checker.ok());
  std::vector<float> some(1);
  for (const int64_t sequences : {kMaxSeqLen, kMaxSeqLen + 1}) {
    int64_t size = sequences + 1;
    DLTensor tensor = {some.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &size, nullptr, 0};
    hstujit_value value = {};
    value.tensor = &tensor;
    bool nothing = false;
    const ArgumentFailure failure = checker->check(&value, 1, {false, 0}, &nothing);
    EXPECT_EQ(failure.none(), sequences == kMaxSeqLen);
    if (failure.none()) continue;
    EXPECT_THAT(checker->explain(failure, &value, {false, 0}).message(),
                HasSubstr("counts is of 268435457 sequences; allowed: at most 268435456"));
  }
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
