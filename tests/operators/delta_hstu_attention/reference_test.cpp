// The float64 reference: by hand, against that of hstu_attention on the same data, and its gradients as slopes.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/spec/operators/delta_hstu_attention/spec.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/spec/attention_slopes.h"

namespace hstujit {
namespace {

HostValue& value_of(const OpSpec& spec, std::vector<HostValue>& values, std::string_view name) {
  return argument(spec, values, name);
}

// A value of every kind of mask, and a bias, which both operators draw alike.
std::vector<DeltaHstuAttentionParams> masks() {
  std::vector<DeltaHstuAttentionParams> result(6);
  result[1].num_targets = true;
  result[1].target_group_size = 2;
  result[2].max_attn_len = 4;
  result[2].contextual_seq_len = 3;
  result[2].num_targets = true;
  result[3].causal = false;
  result[3].full_mask = true;
  result[4].sla_k1 = 3;
  result[4].sla_k2 = 2;
  result[5].rab_heads = 2;
  for (DeltaHstuAttentionParams& params : result) {
    params.heads = 2;
    params.attn_dim = 16;
    params.hidden_dim = 8;
  }
  return result;
}

// The output of hstu_attention on random data, and of delta_hstu_attention for the rows of q that `delta` says: the
// last ones of each sequence, with `before` rows of whatever in front where that is more than a sequence has.
struct Outputs {
  std::vector<double> all, last;
};

Outputs outputs_of(const DeltaHstuAttentionParams& params, const Lengths& lengths) {
  const HstuAttentionSpec whole(params);
  const DeltaHstuAttentionSpec spec(params);
  std::vector<HostValue> all = whole.make_inputs(Direction::kForward, lengths, 9);
  std::vector<HostValue> values = spec.make_inputs(Direction::kForward, lengths, 9);
  for (const char* name : {"k", "v", "seq_offsets"}) value_of(spec, values, name) = value_of(whole, all, name);
  const std::vector<double>& rows = value_of(whole, all, "q").tensor.reals;
  std::vector<double>& queries = value_of(spec, values, "q").tensor.reals;
  const int64_t width = params.heads * params.attn_dim;
  int64_t first = 0, first_query = 0;
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    const int64_t n = lengths.rows[b], m = lengths.rows_of("Lq")[b], common = std::min(n, m);
    std::copy_n(rows.begin() + (first + n - common) * width, common * width,
                queries.begin() + (first_query + m - common) * width);
    first += n;
    first_query += m;
  }
  whole.reference(Direction::kForward, lengths, all);
  spec.reference(Direction::kForward, lengths, values);
  return {all.back().tensor.reals, values.back().tensor.reals};
}

double silu(double x) { return x / (1 + std::exp(-x)); }

TEST(DeltaHstuAttentionReference, ByHand) {
  for (const bool jagged : {false, true}) {
    DeltaHstuAttentionParams params;
    params.attn_dim = params.hidden_dim = 8;
    params.jagged_queries = jagged;
    const DeltaHstuAttentionSpec spec(params);
    // The last two rows of three, and a row before a sequence of one.
    const Lengths lengths{{3, 1}, {}, 4, {{"Lq", {2, 2}}}};
    auto values = spec.make_inputs(Direction::kForward, lengths, 1);
    const std::vector<double> columns[] = {{2, 3, 50, 4}, {0.5, -1, 2, 0.25}, {1, 10, 100, 1000}};
    for (size_t argument = 0; argument < 3; ++argument) {
      auto& reals = values[argument].tensor.reals;
      ASSERT_EQ(reals.size(), 4u * 8);
      std::fill(reals.begin(), reals.end(), 0.0);
      for (size_t row = 0; row < 4; ++row) reals[8 * row] = columns[argument][row];
    }
    value_of(spec, values, "alpha").scalar = 0.5;
    spec.reference(Direction::kForward, lengths, values);
    const HostTensor& out = value_of(spec, values, "out").tensor;
    EXPECT_EQ(out.shape, (std::vector<int64_t>{4, 1, 8}));
    EXPECT_NEAR(out.reals[0], (silu(0.5 * 2 * 0.5) * 1 + silu(0.5 * 2 * -1) * 10) / 4, 1e-13);
    EXPECT_NEAR(out.reals[8], (silu(0.5 * 3 * 0.5) * 1 + silu(0.5 * 3 * -1) * 10 + silu(0.5 * 3 * 2) * 100) / 4, 1e-13);
    EXPECT_EQ(out.reals[16], 0) << "before its sequence";
    EXPECT_NEAR(out.reals[24], silu(0.5 * 4 * 0.25) * 1000 / 4, 1e-12);
  }
}

TEST(DeltaHstuAttentionReference, ADeltaOfAllRowsIsHstuAttention) {
  for (DeltaHstuAttentionParams params : masks()) {
    params.jagged_queries = true;
    const Outputs outputs = outputs_of(params, {{13, 0, 1, 20}, {5, 0, 1, 0}, 20, {{"Lq", {13, 0, 1, 20}}}});
    EXPECT_EQ(outputs.last, outputs.all);
    params.jagged_queries = false;
    const Outputs dense = outputs_of(params, {{7, 7}, {2, 0}, 7, {{"Lq", {7, 7}}}});
    EXPECT_EQ(dense.last, dense.all);
  }
}

TEST(DeltaHstuAttentionReference, LastRowsAreThoseOfHstuAttentionAndRowsBeforeASequenceAreZero) {
  for (DeltaHstuAttentionParams params : masks()) {
    for (const bool jagged : {false, true}) {
      params.jagged_queries = jagged;
      const Lengths lengths{{13, 0, 1, 20},
                            {5, 0, 1, 0},
                            20,
                            {{"Lq", jagged ? std::vector<int64_t>{6, 2, 0, 23} : std::vector<int64_t>(4, 6)}}};
      const Outputs outputs = outputs_of(params, lengths);
      const int64_t width = params.heads * params.hidden_dim;
      int64_t first = 0, first_query = 0;
      for (size_t b = 0; b < lengths.rows.size(); ++b) {
        const int64_t n = lengths.rows[b], m = lengths.rows_of("Lq")[b];
        for (int64_t element = 0; element < m * width; ++element) {
          const int64_t at = (first + n - m) * width + element;
          const double expected = at < first * width ? 0 : outputs.all[static_cast<size_t>(at)];
          ASSERT_EQ(outputs.last[static_cast<size_t>(first_query * width + element)], expected)
              << "sequence " << b << " element " << element << " jagged " << jagged;
        }
        first += n;
        first_query += m;
      }
    }
  }
}

// Fewer rows than a sequence has, all of them, none, and more.
Lengths few_rows(bool jagged) {
  return {
      {7, 0, 1, 4}, {3, 0, 1, 0}, 8, {{"Lq", jagged ? std::vector<int64_t>{3, 2, 0, 6} : std::vector<int64_t>(4, 3)}}};
}

TEST(DeltaHstuAttentionReference, GradientsAreTheSlopesOfTheForwardReference) {
  for (const bool jagged : {false, true}) {
    DeltaHstuAttentionParams params;
    params.heads = 2;
    params.attn_dim = 8;
    params.hidden_dim = 16;
    params.dtype = DataType::kFp32;
    params.num_targets = true;
    params.contextual_seq_len = 2;
    params.jagged_queries = jagged;
    expect_slopes<DeltaHstuAttentionSpec>(params, few_rows(jagged));
    params.num_softmax_heads = 1;
    params.attn_scale = "rows";
    expect_slopes_of(DeltaHstuAttentionSpec(params), few_rows(jagged));
    params.rab_heads = 1;
    params.attn_scale = "scalar";
    params.operands = "w: row(grad), b: table(9, grad), c: sequence(grad), p: pair(grad), s: scalar(grad)";
    params.score = "silu(x * w[row] + w[col] * b[clamp(row - col, 0, 8)] + c * p[row, col] + s)";
    expect_slopes_of(DeltaHstuAttentionSpec(params), few_rows(jagged));
  }
}

// The gradients of hstu_attention where dout of the other rows is zero.
TEST(DeltaHstuAttentionReference, GradientsAreThoseOfHstuAttentionWithoutTheOtherRows) {
  for (DeltaHstuAttentionParams params : masks()) {
    for (const bool all : {true, false}) {
      params.jagged_queries = true;
      const HstuAttentionSpec whole(params);
      const DeltaHstuAttentionSpec spec(params);
      const std::vector<int64_t> rows = {13, 0, 1, 20};
      const Lengths lengths{rows, {5, 0, 1, 0}, 20, {{"Lq", all ? rows : std::vector<int64_t>{6, 0, 0, 17}}}};
      constexpr Direction kBackward = Direction::kBackward;
      std::vector<HostValue> expected = whole.make_inputs(kBackward, lengths, 9);
      std::vector<HostValue> values = spec.make_inputs(kBackward, lengths, 9);
      for (const char* name : {"k", "v"})
        argument(spec, values, name, kBackward) = argument(whole, expected, name, kBackward);
      const auto copy_rows = [&](const char* name, int64_t columns, bool clear_others) {
        std::vector<double>& from = argument(whole, expected, name, kBackward).tensor.reals;
        std::vector<double>& to = argument(spec, values, name, kBackward).tensor.reals;
        const int64_t width = params.heads * columns;
        int64_t first = 0, query = 0;
        for (size_t b = 0; b < rows.size(); ++b) {
          const int64_t m = lengths.rows_of("Lq")[b], others = rows[b] - m;
          if (clear_others) std::fill_n(from.begin() + first * width, others * width, 0.0);
          std::copy_n(from.begin() + (first + others) * width, m * width, to.begin() + query * width);
          first += rows[b];
          query += m;
        }
      };
      copy_rows("q", params.attn_dim, false);
      copy_rows("dout", params.hidden_dim, true);
      whole.reference(kBackward, lengths, expected);
      spec.reference(kBackward, lengths, values);
      for (const char* name : {"dk", "dv"}) {
        EXPECT_EQ(argument(spec, values, name, kBackward).tensor.reals,
                  argument(whole, expected, name, kBackward).tensor.reals)
            << name;
      }
      if (params.has_bias()) {
        EXPECT_EQ(argument(spec, values, "drab", kBackward).tensor.reals,
                  argument(whole, expected, "drab", kBackward).tensor.reals);
      }
      const std::vector<double> dq = argument(spec, values, "dq", kBackward).tensor.reals;
      copy_rows("dq", params.attn_dim, false);
      EXPECT_EQ(argument(spec, values, "dq", kBackward).tensor.reals, dq);
    }
  }
}

TEST(DeltaHstuAttentionInputs, FollowFromTheLengths) {
  for (const bool jagged : {false, true}) {
    DeltaHstuAttentionParams params = masks()[1];
    params.jagged_queries = jagged;
    const DeltaHstuAttentionSpec spec(params);
    const Lengths lengths{
        {13, 0, 1}, {5, 0, 1}, 20, {{"Lq", jagged ? std::vector<int64_t>{6, 0, 2} : std::vector<int64_t>(3, 6)}}};
    auto values = spec.make_inputs(Direction::kForward, lengths, 7);
    ASSERT_EQ(values.size(), spec.signature(Direction::kForward).size());
    EXPECT_EQ(value_of(spec, values, "q").tensor.shape, (std::vector<int64_t>{jagged ? 8 : 18, 2, 16}));
    EXPECT_EQ(value_of(spec, values, "k").tensor.shape, (std::vector<int64_t>{14, 2, 16}));
    EXPECT_EQ(value_of(spec, values, "max_delta_len").scalar, 6);
    if (jagged) {
      EXPECT_EQ(value_of(spec, values, "seq_offsets_q").tensor.integers, (std::vector<int64_t>{0, 6, 6, 8}));
    }
    const Lengths none{{}, {}, 20};
    values = spec.make_inputs(Direction::kForward, none, 7);
    EXPECT_EQ(value_of(spec, values, "max_delta_len").scalar, 0) << "no sequences";
  }
}

}  // namespace
}  // namespace hstujit
