// Programs whose steps destroy what earlier steps gave are refused where they are built.
#include "compiler/spec/program_writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/support/json.h"

namespace hstujit {
namespace {

constexpr Direction kForward = Direction::kForward, kBackward = Direction::kBackward;

OpSpecPtr silu() { return *parse_op_spec({{"op", "silu"}, {"width", 8}}, ""); }

OpSpecPtr attention(bool adds) {
  return std::make_shared<HstuAttentionSpec>(HstuAttentionParams{
      .heads = 1, .attn_dim = 8, .hidden_dim = 8, .rab_heads = 1, .attn_scale = "scalar", .adds_gradients = adds});
}

std::string mistake_of(ProgramBuilder& program) {
  try {
    program.finish();
    return "";
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

// Two steps of silu, from x, to these parts of values.
std::string mistake_of_writes(const ProgramValue& first, const ProgramValue& second) {
  ProgramBuilder program;
  const Dimension rows = Dimension::of("L"), eight = Dimension::constant(8);
  program.temporary("between", DataType::kBf16, 8);
  program.tensor(ArgumentRole::kOutput, "wide", DataType::kBf16, {rows, Dimension::constant(16)}, "two of them");
  program.step(silu(), kForward, {{"out", {"wide", 0}}}).step(silu(), kForward, {{"out", {"wide", 8}}});
  program.tensor(ArgumentRole::kOutput, "stack", DataType::kBf16, {Dimension::constant(2), rows, eight}, "stacked");
  for (const int64_t index : {0, 1}) program.step(silu(), kForward, {{"out", {"stack", -1, {}, 0, index}}});
  program.step(silu(), kForward, {{"out", first}});
  program.step(silu(), kForward, {{"out", second}});
  return mistake_of(program);
}

constexpr const char* kWide =
    "silu writes wide over what silu has written; it must add to that, or write other elements";
constexpr const char* kY = "silu writes y over what silu has written; it must add to that, or write other elements";

TEST(ProgramWrites, OfDifferentElementsAreAllowed) {
  EXPECT_EQ(mistake_of_writes({"y"}, {"z"}), "");
  EXPECT_EQ(mistake_of_writes({"between"}, {"between"}), "") << "a temporary may be written anew";
}

TEST(ProgramWrites, OfTheSameElementsAreRefused) {
  EXPECT_EQ(mistake_of_writes({"y"}, {"y"}), kY);
  EXPECT_EQ(mistake_of_writes({"wide", 0}, {"y"}), kWide);
  EXPECT_EQ(mistake_of_writes({"wide", 4}, {"y"}), kWide) << "of two steps' columns";
  EXPECT_THAT(mistake_of_writes({"stack", -1, {}, 0, 1}, {"y"}), testing::StartsWith("silu writes stack over what"));
}

TEST(ProgramWrites, AnOutputLendsItsMemoryBeforeItIsWritten) {
  const ProgramValue y{"y"};
  EXPECT_EQ(mistake_of_writes(y.for_now(), y), "");
  EXPECT_EQ(mistake_of_writes(y, y.for_now()), kY);
  EXPECT_EQ(mistake_of_writes(y.for_now(), {"z"}), "silu writes y for now, and no later step writes its final values");
  EXPECT_EQ(mistake_of_writes(y.for_now(), y.for_now()),
            "silu writes y for now, and no later step writes its final values");
  ProgramBuilder program;
  program.step(silu(), kForward, {{"out", y}}).step(silu(), kForward, {{"out", {"z"}}}).workspace_in("y");
  EXPECT_EQ(mistake_of(program), kY);
}

TEST(ProgramWrites, AnOutputIsWritten) {
  ProgramBuilder program;
  program.matrix(ArgumentRole::kOutput, "kept", DataType::kBf16, 8, "seq_offsets", "of nobody");
  program.step(silu(), kForward);
  EXPECT_EQ(mistake_of(program), "no step writes kept");
}

// Two layers that share a bias and a factor: what layers have of their own has an index, or another name.
std::string mistake_of_layers(bool adds, const char* added_to) {
  ProgramBuilder program;
  program.step(attention(false), kBackward);
  program.step(attention(adds), kBackward,
               {{"dq", {"dq_2"}},
                {"dk", {"dk_2"}},
                {"dv", {"dv_2"}},
                {"drab_before", {added_to}},
                {"dattn_scale_before", {"dattn_scale"}}});
  return mistake_of(program);
}

TEST(ProgramWrites, AddUpWhereTheStepSaysSo) {
  EXPECT_EQ(mistake_of_layers(true, "drab"), "");
  const char* const lost =
      "hstu_attention writes drab over what hstu_attention has written; it must add to that, or write other elements";
  EXPECT_EQ(mistake_of_layers(false, "drab"), lost);
  EXPECT_EQ(mistake_of_layers(true, "somewhere_else"), lost) << "it adds to another tensor";
}

}  // namespace
}  // namespace hstujit
