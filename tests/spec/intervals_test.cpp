// attn_func: its rules, its place in signatures, and the reference, held to masks that fields say, too, and to a
// decoded mask of each pair.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "compiler/spec/batch.h"
#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {
namespace {

Json intervals_json(const Json& changes = Json::object()) {
  Json json = {{"op", "hstu_attention"}, {"heads", 2}, {"attn_dim", 8}, {"hidden_dim", 8}, {"dtype", "fp32"}};
  json.update(changes);
  return json;
}

OpSpecPtr intervals_spec(const Json& changes) { return parse_op_spec(intervals_json(changes), "").value(); }

std::string intervals_refusal(const Json& changes) {
  return parse_op_spec(intervals_json(changes), "").status().message();
}

TEST(AttnFunc, ReplacesTheOtherFieldsOfTheMask) {
  EXPECT_EQ(
      intervals_refusal({{"attn_func", 2}}),
      "attn_func is 2, but the first interval has an end alone, and each further one a begin and an end; allowed: "
      "0, or an odd number up to 31");
  EXPECT_EQ(intervals_refusal({{"attn_func", 3}, {"max_attn_len", 5}}),
            "max_attn_len is 5, but attn_func replaces it; allowed: 0");
  EXPECT_EQ(intervals_refusal({{"attn_func", 3}, {"mask", "col <= row + 1"}}),
            "mask is \"col <= row + 1\", but attn_func replaces it; allowed: no mask");
  for (const char* flag : {"num_targets", "num_contexts", "full_mask"})
    EXPECT_THAT(intervals_refusal({{"attn_func", 3}, {flag, true}}), testing::HasSubstr(flag));
  for (const char* number : {"contextual_seq_len", "sla_k1", "sla_k2"})
    EXPECT_THAT(intervals_refusal({{"attn_func", 3}, {number, 4}}), testing::HasSubstr(number));
  EXPECT_THAT(intervals_refusal({{"attn_func", 33}}), testing::HasSubstr("from 0 to 31"));
}

TEST(AttnFunc, HeadsShareItsHeads) {
  EXPECT_EQ(intervals_refusal({{"attn_func_heads", 2}}),
            "attn_func_heads is 2, but launches take no attn_func; allowed: 0, or attn_func above 0 with it");
  EXPECT_EQ(
      intervals_refusal({{"heads", 4}, {"attn_func", 3}, {"attn_func_heads", 3}}),
      "attn_func_heads is 3, but heads share the mask's heads evenly; allowed: 0, or a divisor of heads, which is "
      "4");
  EXPECT_EQ(intervals_refusal({{"attn_func", 3}, {"attn_func_heads", 2}, {"rab_heads", 1}}),
            "attn_func_heads is 2, but rab may have a gradient, which is a sum over heads that see the same; allowed: "
            "1");
  EXPECT_EQ(intervals_spec({{"attn_func", 3}})->to_json()["attn_func_heads"], 1);
}

TEST(AttnFunc, InstancesWithoutItKeepTheirKeys) {
  const Json plain = intervals_spec(Json::object())->to_json();
  EXPECT_EQ(intervals_spec({{"attn_func", 0}, {"attn_func_heads", 0}})->to_json(), plain);
  EXPECT_FALSE(plain.contains("attn_func") || plain.contains("attn_func_heads"));
  EXPECT_EQ(intervals_spec({{"attn_func", 3}, {"causal", true}})->to_json(),
            intervals_spec({{"attn_func", 3}, {"causal", false}})->to_json());
}

TEST(AttnFunc, HasNumbersForEachRowOfQ) {
  for (const char* op : {"hstu_attention", "delta_hstu_attention"}) {
    const Signature signature =
        intervals_spec({{"op", op}, {"attn_func", 5}, {"attn_func_heads", 2}})->signature(Direction::kForward);
    const Argument& argument = signature[static_cast<size_t>(find_argument(signature, "attn_func"))];
    EXPECT_EQ(argument.dtype, DataType::kInt32);
    ASSERT_EQ(argument.shape.size(), 3U);
    EXPECT_EQ(argument.shape[0], Dimension::constant(2));
    EXPECT_EQ(argument.shape[1], Dimension::constant(5));
    EXPECT_EQ(argument.shape[2], signature[static_cast<size_t>(find_argument(signature, "q"))].shape[0]);
  }
}

const Lengths& some_lengths() {
  static const Lengths lengths{.rows = {7, 0, 1, 24, 11}, .num_targets = {2, 0, 1, 5, 0}, .max_seq_len = 24};
  return lengths;
}

// Outputs of the reference for an instance whose inputs are those of `attn_func`, a number of each row that
// `number(row, rows of the sequence, targets, which)` gives.
using Numbers = std::function<int64_t(int64_t, int64_t, int64_t, int64_t)>;
std::vector<HostValue> outputs_of(const Json& changes, Direction direction, const Numbers& number) {
  const OpSpecPtr spec = intervals_spec(changes);
  const Signature signature = spec->signature(direction);
  std::vector<HostValue> values = spec->make_inputs(direction, some_lengths(), 3);
  if (const int at = find_argument(signature, "attn_func"); at >= 0) {
    HostTensor& tensor = values[static_cast<size_t>(at)].tensor;
    const int64_t functions = tensor.shape[1], all = tensor.shape[2];
    int64_t first = 0;
    for (size_t b = 0; b < some_lengths().rows.size(); first += some_lengths().rows[b++]) {
      const int64_t n = some_lengths().rows[b];
      for (int64_t index = 0; index < tensor.shape[0] * functions; ++index) {
        for (int64_t i = 0; i < n; ++i)
          tensor.integers[static_cast<size_t>(index * all + first + i)] =
              number(i, n, some_lengths().num_targets[b], index % functions);
      }
    }
  }
  spec->reference(direction, some_lengths(), values);
  std::vector<HostValue> outputs;
  for (size_t i = 0; i < signature.size(); ++i) {
    if (signature[i].role == ArgumentRole::kOutput) outputs.push_back(values[i]);
  }
  return outputs;
}

void expect_alike(const Json& fields, const Json& intervals, const Numbers& number) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const auto wanted = outputs_of(fields, direction, number), found = outputs_of(intervals, direction, number);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].tensor.reals, wanted[i].tensor.reals) << i;
  }
}

TEST(AttnFunc, SaysWhatFieldsSay) {
  expect_alike(Json::object(), {{"attn_func", 1}}, [](int64_t i, int64_t, int64_t, int64_t) { return i + 1; });
  expect_alike({{"full_mask", true}}, {{"attn_func", 1}, {"attn_func_heads", 2}},
               [](int64_t, int64_t n, int64_t, int64_t) { return n + 100; });
  expect_alike({{"max_attn_len", 3}}, {{"attn_func", 3}}, [](int64_t i, int64_t, int64_t, int64_t which) {
    return which == 0 ? 0 : which == 1 ? i - 3 : i + 1;
  });
  // As TorchEasyRec builds the tensor of semi-local attention: k2 leading columns and k1 local ones, and the history
  // for targets.
  static constexpr int64_t kLocal = 4, kLeading = 3;
  expect_alike(
      {{"sla_k1", kLocal}, {"sla_k2", kLeading}, {"num_targets", true}}, {{"attn_func", 3}},
      [](int64_t i, int64_t n, int64_t t, int64_t which) {
        const int64_t history = std::max<int64_t>(n - t, 0);
        if (i >= history) return history;
        return which == 0 ? std::min(kLeading, i + 1) : which == 1 ? std::max(kLeading, i - kLocal + 1) : i + 1;
      });
}

// Any numbers: the mask of each pair is what the definition says.
TEST(AttnFunc, TakesAnyNumbers) {
  const OpSpecPtr spec =
      intervals_spec({{"attn_func", 5}, {"attn_func_heads", 2}, {"score", "identity"}, {"hidden_dim", 24}});
  const Lengths lengths{.rows = {24}, .num_targets = {}, .max_seq_len = 24};
  const Signature signature = spec->signature(Direction::kForward);
  const auto at = [&](const char* name) { return static_cast<size_t>(find_argument(signature, name)); };
  for (const uint64_t seed : {1, 2, 3, 4}) {
    std::vector<HostValue> values = spec->make_inputs(Direction::kForward, lengths, seed);
    const std::vector<int64_t> ends = values[at("attn_func")].tensor.integers;
    // v is the identity, so that row i of out is row i of P: its pairs are those that are not 0.
    std::vector<double>& v = values[at("v")].tensor.reals;
    for (int64_t row = 0; row < 24; ++row) {
      for (int64_t column = 0; column < 48; ++column)
        v[static_cast<size_t>(row * 48 + column)] = column % 24 == row ? 1 : 0;
    }
    spec->reference(Direction::kForward, lengths, values);
    for (int64_t head = 0; head < 2; ++head) {
      for (int64_t i = 0; i < 24; ++i) {
        const auto end = [&](int64_t which) { return ends[static_cast<size_t>((head * 5 + which) * 24 + i)]; };
        for (int64_t j = 0; j < 24; ++j) {
          const bool valid = j < end(0) || (end(1) <= j && j < end(2)) || (end(3) <= j && j < end(4));
          EXPECT_EQ(values[at("out")].tensor.reals[static_cast<size_t>(i * 48 + head * 24 + j)] != 0, valid)
              << seed << " " << head << " " << i << " " << j;
        }
      }
    }
  }
}

// Work and tiles are counted as of the causal mask: the library does not know the tensor.
TEST(AttnFunc, CountsAreThoseOfTheCausalMask) {
  const HstuAttentionParams plain, intervals = {.causal = false, .attn_func = 3, .attn_func_heads = 1};
  for (const int64_t n : {0, 1, 9}) {
    for (const int64_t first : {int64_t{0}, n / 2})
      EXPECT_EQ(hstu_attention_valid_pairs(intervals, n, 0, first), hstu_attention_valid_pairs(plain, n, 0, first));
  }
}

}  // namespace
}  // namespace hstujit
