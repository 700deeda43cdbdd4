// dropout of hstu_attention: its place in JSON, which pairs are dropped, and the reference's gradients against
// differences of its results.
#include "compiler/spec/operators/hstu_attention/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/reference.h"

namespace hstujit {
namespace {

OpSpecPtr dropout_spec(const Json& changes = Json::object()) {
  Json json = {{"op", "hstu_attention"}, {"heads", 3},      {"attn_dim", 8},
               {"hidden_dim", 8},        {"dtype", "fp32"}, {"dropout", true}};
  json.update(changes);
  return parse_op_spec(json, "").value();
}

TEST(AttentionDropout, InstancesWithoutItKeepTheirKeys) {
  const Json without = dropout_spec({{"dropout", false}, {"seed_tensor", true}})->to_json();
  EXPECT_FALSE(without.contains("dropout") || without.contains("seed_tensor"));
  EXPECT_TRUE(dropout_spec()->to_json()["dropout"]);
  const OpSpecPtr of_tensor = dropout_spec({{"seed_tensor", true}});
  EXPECT_EQ(parse_op_spec(of_tensor->to_json(), "").value()->to_json(), of_tensor->to_json());
  ASSERT_FALSE(of_tensor->tuned_alike().empty());
  EXPECT_EQ(of_tensor->tuned_alike()[0].spec->to_json(), dropout_spec()->to_json());
}

TEST(AttentionDropout, LaunchesTakeItsArguments) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const Signature of_number = dropout_spec()->signature(direction),
                    of_tensor = dropout_spec({{"seed_tensor", true}})->signature(direction);
    const int ratio = find_argument(of_number, "dropout_ratio");
    ASSERT_GE(ratio, 0);
    EXPECT_EQ(of_number[static_cast<size_t>(ratio)].range, (RealRange{0, 1}));
    EXPECT_EQ(find_argument(of_number, "seed"), ratio + 1);
    EXPECT_EQ(find_argument(of_number, "offset"), ratio + 2);
    EXPECT_EQ(find_argument(of_tensor, "seed_tensor"), ratio + 1);
    EXPECT_EQ(find_argument(of_tensor, "seed"), -1);
    EXPECT_EQ(find_argument(dropout_spec({{"dropout", false}})->signature(direction), "dropout_ratio"), -1);
  }
}

// As docs/ops-attention.md has it.
TEST(AttentionDropout, PairsFollowFromTheirBlock) {
  const int64_t seed = -7, offset = 3, start = 5'000'000'000, head = 2;
  const AttentionDropout dropout(0.5, seed, offset);
  const uint64_t key = static_cast<uint64_t>(seed) + 3 * 0x9e3779b97f4a7c15;
  for (const int64_t i : {0, 7, 8, 15, 16, 1000}) {
    for (const int64_t j : {0, 3, 4, 8, 13, 31, 999}) {
      const auto words = philox4x32({static_cast<uint32_t>(8 * (i / 16) + i % 8),
                                     static_cast<uint32_t>(2 * (j / 16) + j / 4 % 2), 705'032'704, 1024 + 2},
                                    {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
      const uint32_t word = words[static_cast<size_t>(2 * (i / 8 % 2) + j / 8 % 2)];
      EXPECT_EQ(dropout.keeps(start, head, i, j), (word >> 8 * (j % 4) & 255) >= 128) << i << " " << j;
    }
  }
}

TEST(AttentionDropout, DropsTheRatio) {
  const auto kept = [](const AttentionDropout& dropout, int64_t start, int64_t head) {
    std::vector<bool> pairs;
    for (int64_t i = 0; i < 256; ++i) {
      for (int64_t j = 0; j < 256; ++j) pairs.push_back(dropout.keeps(start, head, i, j));
    }
    return pairs;
  };
  const auto share = [&](double ratio) {
    const std::vector<bool> pairs = kept(AttentionDropout(ratio, 1, 0), 0, 0);
    return static_cast<double>(std::ranges::count(pairs, true)) / static_cast<double>(pairs.size());
  };
  EXPECT_EQ(share(0), 1);
  EXPECT_EQ(share(1), 0);
  for (const double ratio : {0.1, 0.3, 0.5, 0.9}) {
    EXPECT_NEAR(share(ratio), 1 - std::round(256 * ratio) / 256, 0.01);
    EXPECT_EQ(AttentionDropout(ratio, 1, 0).factor(0, 0, 0, 0) == 0, !AttentionDropout(ratio, 1, 0).keeps(0, 0, 0, 0));
  }
  const std::vector<bool> pairs = kept(AttentionDropout(0.5, 1, 0), 0, 0);
  EXPECT_NE(pairs, kept(AttentionDropout(0.5, 2, 0), 0, 0));
  EXPECT_NE(pairs, kept(AttentionDropout(0.5, 1, 1), 0, 0));
  EXPECT_NE(pairs, kept(AttentionDropout(0.5, 1, 0), 1, 0));
  EXPECT_NE(pairs, kept(AttentionDropout(0.5, 1, 0), 0, 1));
}

// The sum of dout times out, of the inputs of a backward call.
double loss(const OpSpec& spec, const Lengths& lengths, const std::vector<HostValue>& backward) {
  const Signature arguments = spec.signature(Direction::kForward), given = spec.signature(Direction::kBackward);
  std::vector<HostValue> values(arguments.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (const int from = find_argument(given, arguments[i].name); from >= 0)
      values[i] = backward[static_cast<size_t>(from)];
  }
  spec.reference(Direction::kForward, lengths, values);
  const std::vector<double>& out = values.back().tensor.reals;
  const std::vector<double>& dout = backward[static_cast<size_t>(find_argument(given, "dout"))].tensor.reals;
  double sum = 0;
  for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
  return sum;
}

TEST(AttentionDropout, GradientsAreThoseOfTheResult) {
  const Lengths lengths{.rows = {9, 20}, .num_targets = {}, .max_seq_len = 20};
  const OpSpecPtr spec = dropout_spec({{"num_softmax_heads", 1}, {"rab_heads", 1}, {"attn_scale", "rows"}});
  std::vector<HostValue> values = spec->make_inputs(Direction::kBackward, lengths, 3);
  const Signature arguments = spec->signature(Direction::kBackward);
  std::vector<HostValue> computed = values;
  spec->reference(Direction::kBackward, lengths, computed);
  for (const std::string name : {"q", "k", "v", "rab", "attn_scale"}) {
    std::vector<double>& input = values[static_cast<size_t>(find_argument(arguments, name))].tensor.reals;
    const std::vector<double>& gradient =
        computed[static_cast<size_t>(find_argument(arguments, "d" + name))].tensor.reals;
    for (size_t i = 0; i < input.size(); i += 1 + input.size() / 16) {
      const double x = input[i], step = 1e-5;
      input[i] = x + step;
      const double above = loss(*spec, lengths, values);
      input[i] = x - step;
      const double below = loss(*spec, lengths, values);
      input[i] = x;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 1e-6 * (1 + std::abs(gradient[i]))) << name << " " << i;
    }
  }
}

}  // namespace
}  // namespace hstujit
