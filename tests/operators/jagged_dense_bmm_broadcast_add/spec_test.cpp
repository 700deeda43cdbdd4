// jagged_dense_bmm_broadcast_add and jagged_jagged_bmm: what they take, their reference, and what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "compiler/spec/config.h"
#include "tests/operators/signature_text.h"

namespace hstujit {
namespace {

constexpr const char* kOp = "jagged_dense_bmm_broadcast_add";

OpSpecPtr bmm(const Json& changes = Json::object()) {
  Json json = {{"op", kOp}, {"k", 8}, {"n", 16}};
  json.update(changes);
  return *parse_op_spec(json, "");
}
OpSpecPtr jagged_jagged(const Json& changes = Json::object()) {
  Json json = {{"op", "jagged_jagged_bmm"}, {"k", 8}, {"n", 16}};
  json.update(changes);
  return *parse_op_spec(json, "");
}

// The values of a call by the names of its arguments.
struct Call {
  Call(OpSpecPtr spec, Direction direction, Lengths lengths, uint64_t seed)
      : spec(std::move(spec)), direction(direction), lengths(std::move(lengths)) {
    signature = this->spec->signature(direction);
    values = this->spec->make_inputs(direction, this->lengths, seed);
  }
  HostValue& operator[](std::string_view name) { return values[static_cast<size_t>(find_argument(signature, name))]; }
  std::vector<double>& reals(std::string_view name) { return (*this)[name].tensor.reals; }
  void run() { spec->reference(direction, lengths, values); }

  OpSpecPtr spec;
  Direction direction;
  Lengths lengths;
  Signature signature;
  std::vector<HostValue> values;
};

const Lengths kLengths = {{2, 0, 1}, {}, 2, {}};

TEST(JaggedDenseBmm, Signature) {
  EXPECT_EQ(signature_text(*bmm()), "bias(B, 16) jagged(L, 8) dense(B, 8, 16) seq_offsets(B+1) max_seq_len out(L, 16)");
  EXPECT_EQ(signature_text(*bmm({{"elementwise", true}, {"transpose_dense", true}})),
            "bias(L, 16) jagged(L, 8) dense(B, 16, 8) seq_offsets(B+1) max_seq_len out(L, 16)");
  EXPECT_EQ(signature_text(*bmm({{"bias", false}})),
            "jagged(L, 8) dense(B, 8, 16) seq_offsets(B+1) max_seq_len out(L, 16)");
  EXPECT_EQ(signature_text(*jagged_jagged()), "left(L, 8) right(L, 16) seq_offsets(B+1) max_seq_len out(B, 8, 16)");
  EXPECT_EQ(signature_text(*jagged_jagged({{"transpose_out", true}})),
            "right(L, 16) left(L, 8) seq_offsets(B+1) max_seq_len out(B, 16, 8)");
}

TEST(JaggedDenseBmm, BackwardIsAProgram) {
  EXPECT_EQ(signature_text(*bmm(), Direction::kBackward),
            "jagged(L, 8) dense(B, 8, 16) dout(L, 16) seq_offsets(B+1) max_seq_len djagged(L, 8) ddense(B, 8, 16) "
            "dbias(B, 16)");
  EXPECT_EQ(signature_text(*bmm({{"elementwise", true}, {"transpose_dense", true}}), Direction::kBackward),
            "jagged(L, 8) dense(B, 16, 8) dout(L, 16) seq_offsets(B+1) max_seq_len djagged(L, 8) ddense(B, 16, 8)");
  EXPECT_TRUE(bmm({{"n", 16392}})->supports(Direction::kBackward));
  EXPECT_FALSE(jagged_jagged()->supports(Direction::kBackward));
}

// Without a bias there is none of each element.
TEST(JaggedDenseBmm, EqualMeaningsHaveOneForm) {
  EXPECT_EQ(key_text(*bmm({{"bias", false}, {"elementwise", true}})), key_text(*bmm({{"bias", false}})));
}

TEST(JaggedDenseBmm, Work) {
  const Work work = bmm()->work(Direction::kForward, {{10, 0, 5}, {}, 10, {}});
  EXPECT_EQ(work.flops, 2 * 15 * 8 * 16);
  EXPECT_EQ(work.bytes, 2 * (15 * 8 + 3 * 8 * 16 + 3 * 16 + 15 * 16) + 4 * 8);
  EXPECT_EQ(jagged_jagged()->work(Direction::kForward, {{10, 0, 5}, {}, 10, {}}).flops, 2 * 15 * 8 * 16);
}

// Rows of ones and twos times a matrix of each sequence, whose element (i, column) is i + 100 column + 1000 sequence.
TEST(JaggedDenseBmm, ByHand) {
  for (const bool transpose : {false, true}) {
    for (const bool elementwise : {false, true}) {
      Call call(bmm({{"transpose_dense", transpose}, {"elementwise", elementwise}}), Direction::kForward, kLengths, 1);
      for (size_t row = 0; row < 3; ++row) {
        for (size_t i = 0; i < 8; ++i) call.reals("jagged")[row * 8 + i] = row == 1 ? 2 : 1;
      }
      for (size_t b = 0; b < 3; ++b) {
        for (size_t i = 0; i < 8; ++i) {
          for (size_t column = 0; column < 16; ++column) {
            const size_t place = b * 128 + (transpose ? column * 8 + i : i * 16 + column);
            call.reals("dense")[place] = static_cast<double>(i + 100 * column + 1000 * b);
          }
        }
      }
      std::vector<double>& bias = call.reals("bias");
      for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<double>(i / 16) + 0.5;
      call.run();
      ASSERT_EQ(call["out"].tensor.shape, (std::vector<int64_t>{3, 16}));
      for (size_t column = 0; column < 16; ++column) {
        const auto product = static_cast<double>(28 + 800 * column);
        EXPECT_EQ(call.reals("out")[column], product + 0.5);
        EXPECT_EQ(call.reals("out")[16 + column], 2 * product + (elementwise ? 1.5 : 0.5));
        EXPECT_EQ(call.reals("out")[32 + column], product + 16000 + 2.5);
      }
    }
  }
}

TEST(JaggedJaggedBmm, ByHand) {
  for (const bool transpose : {false, true}) {
    Call call(jagged_jagged({{"transpose_out", transpose}}), Direction::kForward, kLengths, 1);
    for (size_t row = 0; row < 3; ++row) {
      for (size_t i = 0; i < 8; ++i) call.reals("left")[row * 8 + i] = static_cast<double>(i + row);
      for (size_t i = 0; i < 16; ++i) call.reals("right")[row * 16 + i] = static_cast<double>(100 * i + row);
    }
    call.run();
    ASSERT_EQ(call["out"].tensor.shape,
              transpose ? (std::vector<int64_t>{3, 16, 8}) : std::vector<int64_t>({3, 8, 16}));
    for (size_t i = 0; i < 8; ++i) {
      for (size_t column = 0; column < 16; ++column) {
        const auto left = static_cast<double>(i), right = static_cast<double>(100 * column);
        const size_t place = transpose ? column * 8 + i : i * 16 + column;
        EXPECT_EQ(call.reals("out")[place], left * right + (left + 1) * (right + 1));
        EXPECT_EQ(call.reals("out")[128 + place], 0) << "a sequence without rows";
        EXPECT_EQ(call.reals("out")[256 + place], (left + 2) * (right + 2));
      }
    }
  }
}

// Gradients of every input, against differences of the reference, which is linear in each of them.
TEST(JaggedDenseBmm, GradientsAreTheSlopeOfTheReference) {
  for (const Json& changes : {Json::object(), Json{{"elementwise", true}, {"transpose_dense", true}},
                              Json{{"bias", false}, {"offsets_dtype", "int32"}}}) {
    const OpSpecPtr spec = bmm(changes);
    Call forward(spec, Direction::kForward, kLengths, 2), backward(spec, Direction::kBackward, kLengths, 1);
    for (const char* name : {"jagged", "dense"}) backward[name] = forward[name];
    const std::vector<double> dout = backward.reals("dout");
    backward.run();
    const auto loss = [&] {
      forward.run();
      return std::inner_product(dout.begin(), dout.end(), forward.reals("out").begin(), 0.0);
    };
    for (const Argument& output : backward.signature) {
      if (output.role == ArgumentRole::kInput) continue;
      std::vector<double>& elements = forward.reals(output.name.substr(1));
      ASSERT_EQ(backward.reals(output.name).size(), elements.size()) << output.name;
      for (size_t e = 0; e < elements.size(); e += 5) {
        const double before = loss();
        elements[e] += 1;
        EXPECT_NEAR(loss() - before, backward.reals(output.name)[e], 1e-9) << output.name << e;
        elements[e] -= 1;
      }
    }
  }
}

TEST(JaggedDenseBmm, SaysWhatIsWrong) {
  const auto error = [](const Json& json) { return parse_op_spec(json, "ops[0]").status().message(); };
  EXPECT_EQ(error({{"op", kOp}, {"k", 65537}, {"n", 16}}),
            "ops[0].k is 65537; allowed: an integer from 1 to 65536 (columns of jagged, which the products sum over)");
  EXPECT_EQ(error({{"op", "jagged_jagged_bmm"}, {"k", 8}}),
            "ops[0].n is missing; allowed: an integer from 1 to 65536 (columns of right)");
}

}  // namespace
}  // namespace hstujit
