// Calls whose tensors a text declares.
#include <gtest/gtest.h>

#include "compiler/spec/call/resolve.h"

namespace hstujit {
namespace {

constexpr char kOperands[] = "ts: row(int64), by_age: table(33, heads, grad), slope: head";

class OperandsCall : public testing::Test {
 protected:
  OperandsCall() {
    const std::string dtype = "bf16";
    for (const char* name : {"q", "k", "v"}) given_.tensors[name] = {{20, 4, 64}, dtype};
    given_.tensors["seq_offsets"] = {{4}, "int64"};
    given_.numbers = {"max_seq_len", "alpha"};
    given_.keywords = {{"operands", kOperands}, {"score", "x + by_age[ts[row] - ts[col]] - slope * (row - col)"}};
    given_.tensors["ts"] = {{20}, "int64"};
    given_.tensors["by_age"] = {{33, 4}, "fp32"};
    given_.tensors["slope"] = {{4}, "fp32"};
  }

  Result<ResolvedCall> resolve(Direction direction = Direction::kForward) const {
    return resolve_call(**call_function("hstu_attention", direction), given_);
  }
  std::string refusal() const { return resolve().status().message(); }

  GivenCall given_;
};

TEST_F(OperandsCall, IsAnInstanceWithTheirNames) {
  const auto call = resolve();
  ASSERT_TRUE(call.ok()) << call.status().message();
  const int ts = find_argument(call->signature, "ts");
  ASSERT_GE(ts, 0);
  EXPECT_EQ(call->signature[static_cast<size_t>(ts)].dtype, DataType::kInt64);
  EXPECT_EQ(find_argument(call->signature, "by_age"), ts + 1);
  EXPECT_EQ(find_argument(call->signature, "slope"), ts + 2);
}

TEST_F(OperandsCall, MayGiveThemByPlace) {
  GivenCall by_place = given_;
  for (const auto& [name, place] : {std::pair("ts", "operands[0]"), std::pair("slope", "operands[2]")}) {
    by_place.tensors[place] = by_place.tensors[name];
    by_place.tensors.erase(name);
  }
  const auto function = call_function("hstu_attention", Direction::kForward);
  const auto call = resolve_call(**function, by_place);
  ASSERT_TRUE(call.ok()) << call.status().message();
  EXPECT_EQ(call->instance, resolve()->instance);
}

TEST_F(OperandsCall, ReturnsTheGradientsThatAreDeclared) {
  given_.tensors["dout"] = given_.tensors["q"];
  const auto call = resolve(Direction::kBackward);
  ASSERT_TRUE(call.ok()) << call.status().message();
  const int gradient = find_argument(call->signature, "dby_age");
  ASSERT_GE(gradient, 0);
  EXPECT_EQ(call->signature[static_cast<size_t>(gradient)].role, ArgumentRole::kOutput);
  EXPECT_EQ(find_argument(call->signature, "dslope"), -1);
}

TEST_F(OperandsCall, NamesWhatIsMissingAndWhatIsNotDeclared) {
  given_.tensors.erase("ts");
  given_.tensors["age"] = {{33}, "fp32"};
  EXPECT_EQ(refusal(),
            "hstu_attention: ts is missing; age is not declared in operands; with these parameters it takes q, k, v, "
            "seq_offsets, max_seq_len, alpha, scaling_seqlen, ts, by_age, slope");
  given_.tensors.erase("age");
  given_.tensors["ts"] = {{20}, "int32"};
  EXPECT_EQ(refusal(), "ts has dtype int32; it must be int64");
  given_.tensors["ts"] = {{20, 1}, "int64"};
  EXPECT_EQ(refusal(), "ts has rank 2, shape (20, 1); it must be (L)");
  given_.tensors["ts"] = {{20}, "int64"};
  given_.tensors["operands[3]"] = {{20}, "int64"};
  EXPECT_TRUE(refusal().starts_with("hstu_attention: operands[3] is not declared in operands; ")) << refusal();
}

TEST_F(OperandsCall, WithoutATextKnowsNoOtherTensor) {
  given_.keywords = Json::object();
  EXPECT_TRUE(refusal().starts_with("hstu_attention has no argument \"by_age\"")) << refusal();
}

}  // namespace
}  // namespace hstujit
