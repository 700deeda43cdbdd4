// Launch values with an axis that has as many rows of each sequence as an integer argument says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/launch/arguments.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

Argument rows_argument(const char* name, Dimension rows, DataType dtype = DataType::kFp32) {
  Argument argument;
  argument.name = name;
  argument.dtype = dtype;
  argument.shape = {std::move(rows)};
  return argument;
}

Argument number_argument(const char* name, ArgumentKind kind) {
  Argument argument;
  argument.name = name;
  argument.kind = kind;
  return argument;
}

// q and out stand around what their size follows from, as in delta_hstu_attention.
Signature signature_of_delta() {
  Signature signature = {rows_argument("q", Dimension::uniform("max_delta_len")),
                         rows_argument("seq_offsets", Dimension::of("B", 1), DataType::kInt64),
                         number_argument("max_delta_len", ArgumentKind::kInt),
                         rows_argument("out", Dimension::uniform("max_delta_len"))};
  signature.back().role = ArgumentRole::kOutput;
  return signature;
}

class UniformAxis : public ::testing::Test {
 protected:
  // The sentence about a launch of two sequences; empty when it is as it must be.
  std::string refusal(int64_t q, int64_t max_delta_len, int64_t out, int64_t offsets = 3) {
    const ArgumentChecker checker = ArgumentChecker::create(signature_of_delta()).value();
    const int64_t sizes[] = {q, offsets, 0, out};
    hstujit_value values[4] = {};
    DLTensor tensors[4] = {};
    int64_t shapes[4] = {};
    for (size_t i = 0; i < 4; ++i) {
      shapes[i] = sizes[i];
      tensors[i].data = reinterpret_cast<void*>((i + 1) << 24);
      tensors[i].device = {kDLCUDA, 0};
      tensors[i].ndim = 1;
      tensors[i].dtype = {static_cast<uint8_t>(i == 1 ? kDLInt : kDLFloat), static_cast<uint8_t>(i == 1 ? 64 : 32), 1};
      tensors[i].shape = &shapes[i];
      values[i].tensor = &tensors[i];
    }
    values[2].integer = max_delta_len;
    return checker.explain(checker.check(values, 4, {}, &nothing_to_write_), values, {}).message();
  }

  bool nothing_to_write_ = false;
};

TEST_F(UniformAxis, HasTheRowsOfAllSequences) {
  EXPECT_EQ(refusal(128, 64, 128), "");
  EXPECT_FALSE(nothing_to_write_);
  EXPECT_EQ(refusal(0, 0, 0), "");
  EXPECT_TRUE(nothing_to_write_);
  EXPECT_EQ(refusal(0, 64, 0, /*offsets=*/1), "") << "no sequences";
}

TEST_F(UniformAxis, AnotherSizeIsNamedWithWhatItFollowsFrom) {
  EXPECT_EQ(
      refusal(130, 64, 128),
      "q.shape[0] is 130; it must be B*max_delta_len = 128, with B = 2 (from seq_offsets) and max_delta_len = 64");
  EXPECT_EQ(
      refusal(128, 64, 64),
      "out.shape[0] is 64; it must be B*max_delta_len = 128, with B = 2 (from seq_offsets) and max_delta_len = 64");
  EXPECT_THAT(refusal(1, 0, 0), HasSubstr("q.shape[0] is 1; it must be B*max_delta_len = 0"));
  EXPECT_EQ(refusal(-2, -1, -2), "q.shape[0] is -2; it must be 0 or more");
}

TEST_F(UniformAxis, CountsThatCannotBeAreSentences) {
  EXPECT_EQ(refusal(128, -1, 128), "max_delta_len is -1; it must be 0 or more");
  EXPECT_EQ(refusal(0, std::numeric_limits<int64_t>::min(), 0),
            "max_delta_len is -9223372036854775808; it must be 0 or more");
  EXPECT_EQ(refusal(128, std::numeric_limits<int64_t>::max(), 128),
            "q.shape[0] is 128; it must be B*max_delta_len, with B = 2 (from seq_offsets) and max_delta_len = "
            "9223372036854775807, which no tensor can be");
}

std::string signature_refusal(const Signature& signature) {
  const Result<ArgumentChecker> checker = ArgumentChecker::create(signature);
  EXPECT_EQ(checker.status().code(), Code::kUnsupported);
  return checker.status().message();
}

TEST(UniformAxisSignature, NeedsAnIntegerAndASymbolThatAnotherAxisGives) {
  Signature signature = signature_of_delta();
  signature[2].name = "another";
  EXPECT_EQ(signature_refusal(signature), "q.shape[0] is B*max_delta_len, but max_delta_len is no integer argument");
  signature[2] = number_argument("max_delta_len", ArgumentKind::kFloat);
  EXPECT_EQ(signature_refusal(signature), "q.shape[0] is B*max_delta_len, but max_delta_len is no integer argument");
  signature = signature_of_delta();
  signature[1].shape = {Dimension::of("L")};
  EXPECT_EQ(signature_refusal(signature), "q.shape[0] is B*max_delta_len, but no other axis says what B is");
}

}  // namespace
}  // namespace hstujit
