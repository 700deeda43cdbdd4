// The attention operators as a GPU computes them, as far as rounding goes: operands, P and dS rounded once, sums in
// fp32 that are cut off after every step of a tensor core, an approximate tanh. And with a mistake, when asked.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "compiler/spec/rounding.h"

namespace hstujit::test {

enum class Mistake {
  kNone,
  kWrongRow,       // the last row of a sequence reads the first row's q
  kMissingColumn,  // the last column that a row sees is left out, of every row that sees several
  kMissingSlice,   // of the products with k, the last 8 elements
  kSign,           // of S
  kMask,           // every row sees a column less, or one more
};

class RoundedAttention {
 public:
  RoundedAttention(const AttentionSpec& spec, Direction direction, const std::vector<HostValue>& inputs,
                   Mistake mistake = Mistake::kNone)
      : p_(spec.params()),
        signature_(spec.signature(direction)),
        inputs_(inputs),
        mistake_(mistake),
        tensor_cores_(p_.dtype != DataType::kFp32 || p_.precision == MatmulPrecision::kTf32) {}

  // The outputs by argument.
  std::vector<std::vector<double>> run(Direction direction) const {
    Call x{reals("q"), reals("k"), reals("v"), reals("dout"), reals("rab"), reals("attn_scale")};
    const std::vector<int64_t>& offsets = at("seq_offsets").tensor.integers;
    Sums y;
    y.out.resize(static_cast<size_t>(offsets.back() * p_.heads * p_.hidden_dim));
    y.dv = y.out;
    y.dq.resize(static_cast<size_t>(offsets.back() * p_.heads * p_.attn_dim));
    y.dk = y.dq;
    y.slopes.resize(static_cast<size_t>(offsets.back() * (p_.attn_scale == "rows" ? 1 : 0) + 1));
    if (x.rab != nullptr) y.drab.resize(at("rab").tensor.reals.size());
    for (size_t b = 0; b + 1 < offsets.size(); ++b) {
      for (int64_t head = 0; head < p_.heads; ++head) attend(x, y, b, head, offsets[b], offsets[b + 1] - offsets[b]);
    }
    std::vector<std::vector<double>> outputs(signature_.size());
    const auto put = [&](std::string_view name, const std::vector<float>& sums) {
      const int index = find_argument(signature_, name);
      if (index < 0) return;
      for (size_t i = 0; i < sums.size(); ++i)
        outputs[static_cast<size_t>(index)].push_back(round_to(signature_[static_cast<size_t>(index)].dtype, sums[i]));
    };
    if (direction == Direction::kForward) {
      put("out", y.out);
    } else {
      put("dq", y.dq);
      put("dk", y.dk);
      put("dv", y.dv);
      put("drab", y.drab);
      if (p_.attn_scale != "rows") y.slopes.resize(1);
      if (p_.attn_scale == "rows") y.slopes.pop_back();
      put("dattn_scale", y.slopes);
    }
    return outputs;
  }

 private:
  struct Call {
    const double *q, *k, *v, *dout, *rab, *attn_scale;
  };
  struct Sums {
    std::vector<float> out, dq, dk, dv, drab, slopes;
  };

  const HostValue& at(std::string_view name) const {
    return inputs_[static_cast<size_t>(find_argument(signature_, name))];
  }
  const double* reals(std::string_view name) const {
    return find_argument(signature_, name) < 0 ? nullptr : at(name).tensor.reals.data();
  }

  // Ties away from zero, as the kernels' cvt.rna.
  static float to_tf32(float x) { return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000u) & ~0x1fffu); }
  float operand(double x) const {
    return p_.dtype == DataType::kFp32 && tensor_cores_ ? to_tf32(static_cast<float>(x)) : static_cast<float>(x);
  }
  float stored(float x) const {
    return p_.dtype == DataType::kFp32 ? operand(x) : static_cast<float>(round_to(p_.dtype, x));
  }
  // sum + term, as a tensor core or a fused multiply-add has it.
  float sum(float sum, double term) const {
    const double exact = sum + term;
    const auto rounded = static_cast<float>(exact);
    return tensor_cores_ && std::abs(static_cast<double>(rounded)) > std::abs(exact) ? std::nextafter(rounded, 0.0f)
                                                                                     : rounded;
  }
  float dot(const double* a, const double* b, int64_t width, float first) const {
    const int64_t step = tensor_cores_ ? 8 : 1;
    for (int64_t d = 0; d < width; d += step) {
      double products = 0;
      for (int64_t e = d; e < d + step; ++e) products += static_cast<double>(operand(a[e])) * operand(b[e]);
      first = sum(first, products);
    }
    return first;
  }
  void add(float* to, float weight, const double* from, int64_t width) const {
    for (int64_t d = 0; d < width; ++d) to[d] = sum(to[d], static_cast<double>(weight) * operand(from[d]));
  }

  float tanh(float x) const { return tensor_cores_ ? to_tf32(std::tanh(x)) : std::tanh(x); }

  // score(s) and its derivative.
  void score(float s, float& y, float& dy) const {
    const float h = 0.5f * s, t = tanh(p_.score == "tanh" ? s : h);
    if (p_.score == "silu") {
      y = h * t + h;
      dy = 0.5f * (h * (1 - t * t) + t) + 0.5f;
    } else if (p_.score == "relu") {
      y = s > 0 ? s : 0;
      dy = s > 0 ? 1.0f : 0.0f;
    } else if (p_.score == "relu2") {
      y = s > 0 ? s * s : 0;
      dy = s > 0 ? 2 * s : 0;
    } else if (p_.score == "sigmoid") {
      y = 0.5f * t + 0.5f;
      dy = 0.25f * (1 - t * t);
    } else if (p_.score == "tanh") {
      y = t;
      dy = 1 - t * t;
    } else if (p_.score == "gelu") {
      const float e = std::erf(s * static_cast<float>(std::numbers::sqrt2 / 2));
      y = h * e + h;
      dy = 0.5f * e + 0.5f + s * std::exp(-0.5f * s * s) * static_cast<float>(0.398942280401432678);
    } else {
      y = s;
      dy = 1;
    }
  }

  bool sees(int64_t i, int64_t j, int64_t n, int64_t t) const {
    if (mistake_ == Mistake::kMask && i > 0) return hstu_attention_valid(p_, i - 1, j, n, t);
    if (!hstu_attention_valid(p_, i, j, n, t)) return false;
    if (mistake_ != Mistake::kMissingColumn || j == 0) return true;
    for (int64_t other = j + 1; other < n; ++other) {
      if (hstu_attention_valid(p_, i, other, n, t)) return true;
    }
    return false;
  }

  void attend(const Call& x, Sums& y, size_t b, int64_t head, int64_t first, int64_t n) const {
    const auto place = [&](int64_t row, int64_t width) { return ((first + row) * p_.heads + head) * width; };
    const double alpha = at("alpha").scalar, scaling = at("scaling_seqlen").scalar;
    const auto max_seq_len = static_cast<int64_t>(at("max_seq_len").scalar);
    const int64_t targets = p_.num_targets ? at("num_targets").tensor.integers[b] : 0;
    const int64_t slice = mistake_ == Mistake::kMissingSlice ? p_.attn_dim - 8 : p_.attn_dim;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t read = mistake_ == Mistake::kWrongRow && i + 1 == n ? 0 : i;
      const double *q = x.q + place(read, p_.attn_dim), *dout = x.dout == nullptr ? x.v : x.dout;
      dout += place(i, p_.hidden_dim);
      const bool by_row = p_.attn_scale == "rows";
      const auto factor = x.attn_scale != nullptr
                              ? static_cast<float>(x.attn_scale[by_row ? first + i : 0])
                              : 1.0f / static_cast<float>(scaling > 0 ? scaling : static_cast<double>(max_seq_len));
      const auto pair_at = [&](int64_t j) {
        return static_cast<size_t>(
            ((static_cast<int64_t>(b) * p_.rab_heads + (p_.rab_heads > 0 ? head / (p_.heads / p_.rab_heads) : 0)) *
                 max_seq_len +
             i) *
                max_seq_len +
            j);
      };
      const auto scaled = [&](int64_t j) {
        const float bias = x.rab == nullptr ? 0 : static_cast<float>(x.rab[pair_at(j)]);
        const float s = dot(q, x.k + place(j, p_.attn_dim), slice, bias) * static_cast<float>(alpha);
        return mistake_ == Mistake::kSign ? -s : s;
      };
      if (p_.is_softmax_head(head)) {
        attend_by_softmax(x, y, {i, n, targets, q, dout, static_cast<float>(alpha), place, pair_at, scaled});
        continue;
      }
      for (int64_t j = 0; j < n; ++j) {
        if (!sees(i, j, n, targets)) continue;
        const size_t pair = pair_at(j);
        const double* const k = x.k + place(j, p_.attn_dim);
        const float s = scaled(j);
        float value = 0, derivative = 0;
        score(s, value, derivative);
        add(&y.out[static_cast<size_t>(place(i, p_.hidden_dim))], weigh(value, factor), x.v + place(j, p_.hidden_dim),
            p_.hidden_dim);
        if (x.dout == nullptr) continue;
        const float dp = dot(dout, x.v + place(j, p_.hidden_dim), p_.hidden_dim, 0);
        const float ds = dp * (derivative * static_cast<float>(alpha));
        add(&y.dq[static_cast<size_t>(place(i, p_.attn_dim))], weigh(ds, factor), k, p_.attn_dim);
        add(&y.dk[static_cast<size_t>(place(j, p_.attn_dim))], weigh(ds, factor), q, p_.attn_dim);
        add(&y.dv[static_cast<size_t>(place(j, p_.hidden_dim))], weigh(value, factor), dout, p_.hidden_dim);
        if (x.rab != nullptr) y.drab[pair] += ds * factor;
        y.slopes[by_row ? static_cast<size_t>(first + i) : 0] += value * dp;
      }
    }
  }

  // A row of a head with softmax: where it lies in tensors of so many columns and in the bias, and S of a column.
  struct SoftmaxRow {
    int64_t i, n, targets;
    const double *q, *dout;
    float alpha;
    std::function<int64_t(int64_t row, int64_t width)> place;
    std::function<size_t(int64_t j)> pair;
    std::function<float(int64_t j)> score;
  };

  // Powers of two of fp32, relative to the largest S; backward has the logarithm of their sum.
  void attend_by_softmax(const Call& x, Sums& y, const SoftmaxRow& row) const {
    constexpr auto kLog2E = static_cast<float>(std::numbers::log2e);
    std::vector<int64_t> columns;
    std::vector<float> scores, dp;
    float largest = -std::numeric_limits<float>::infinity(), total = 0, product = 0;
    for (int64_t j = 0; j < row.n; ++j) {
      if (!sees(row.i, j, row.n, row.targets)) continue;
      columns.push_back(j);
      scores.push_back(row.score(j) * kLog2E);
      largest = std::max(largest, scores.back());
      if (x.dout != nullptr) dp.push_back(dot(row.dout, x.v + row.place(j, p_.hidden_dim), p_.hidden_dim, 0));
    }
    float* const out = &y.out[static_cast<size_t>(row.place(row.i, p_.hidden_dim))];
    for (size_t c = 0; c < columns.size(); ++c) {
      const float weight = std::exp2(scores[c] - largest);
      total += weight;
      add(out, stored(weight), x.v + row.place(columns[c], p_.hidden_dim), p_.hidden_dim);
      if (x.dout != nullptr) product += weight * dp[c];
    }
    for (int64_t d = 0; d < (columns.empty() ? 0 : p_.hidden_dim); ++d) out[d] *= 1 / total;
    const float log_sum = largest + std::log2(total), mean = product / total;
    for (size_t c = 0; c < dp.size(); ++c) {
      const int64_t j = columns[c];
      const float weight = std::exp2(scores[c] - log_sum), ds = weight * (dp[c] - mean) * row.alpha;
      add(&y.dq[static_cast<size_t>(row.place(row.i, p_.attn_dim))], stored(ds), x.k + row.place(j, p_.attn_dim),
          p_.attn_dim);
      add(&y.dk[static_cast<size_t>(row.place(j, p_.attn_dim))], stored(ds), row.q, p_.attn_dim);
      add(&y.dv[static_cast<size_t>(row.place(j, p_.hidden_dim))], stored(weight), row.dout, p_.hidden_dim);
      if (x.rab != nullptr) y.drab[row.pair(j)] += ds;
    }
  }

  // Factors of rows are applied before what a second product reads is rounded. Those that all rows have in common are
  // applied behind the sums; here at once, without another rounding.
  float weigh(float x, float factor) const { return p_.attn_scale == "rows" ? stored(x * factor) : stored(x) * factor; }

  const HstuAttentionParams& p_;
  const Signature signature_;
  const std::vector<HostValue>& inputs_;
  const Mistake mistake_;
  const bool tensor_cores_;
};

}  // namespace hstujit::test
