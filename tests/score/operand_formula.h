// Attention whose score reads operands that a test declares, y = tanh(s): the call in float64, and what it is compared
// with.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/emit/source.h"
#include "compiler/ir/attention.h"
#include "compiler/spec/operators/hstu_attention/attention_call.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/emulation/attention_case.h"

namespace hstujit {

// hstu_attention or delta_hstu_attention with operands beside its own.
class WithOperands final : public AttentionSpec {
 public:
  WithOperands(const HstuAttentionParams& params, QueryRows rows, const std::vector<Operand>& declared)
      : AttentionSpec(params, rows, declared) {}
  std::string_view op() const override { return "hstu_attention"; }
  nlohmann::ordered_json to_json() const override { return HstuAttentionSpec(params()).to_json(); }
};
using WithOperandsPtr = std::shared_ptr<const WithOperands>;

inline Module module_of(mlir::MLIRContext& context, const AttentionSpec& spec, const ScoreBuilder& score) {
  auto module = build_attention(context, spec, score);
  if (!module.ok()) throw std::runtime_error(module.status().message());
  return std::move(*module);
}

inline Result<EmittedKernel> emit_with(const ScoreBuilder& score, const AttentionSpec& spec, Direction direction,
                                       const KernelConfig& config, const DeviceSpec& device) {
  const auto context = make_context();
  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(config.skeleton));
  return emit_module(*module_of(*context, spec, score), *skeleton, embedded_templates(), operator_schema(spec.op()),
                     spec, direction, config, device);
}

using Tensors = std::map<std::string, std::vector<double>>;

// The call in float64. A test derives its own, which says what s is and what pairs add to gradients of operands.
class OperandFormula {
 public:
  OperandFormula(const AttentionSpec& spec, Direction direction, const std::vector<HostValue>& values)
      : call_(spec, direction, values), adds_(spec.params().adds_gradients) {
    const Signature signature = spec.signature(direction);
    for (size_t i = 0; i < signature.size(); ++i) {
      const HostTensor& tensor = values[i].tensor;
      tensors_[signature[i].name] =
          tensor.integers.empty() ? tensor.reals : std::vector<double>(tensor.integers.begin(), tensor.integers.end());
      if (signature[i].role == ArgumentRole::kOutput) outputs_.push_back(signature[i].name);
    }
  }
  virtual ~OperandFormula() = default;

  std::vector<double>& tensor(const std::string& name) { return tensors_.at(name); }

  // Everything that the direction returns. Each sequence and head in turn: gradients are sums over them.
  Tensors outputs() const {
    Tensors y;
    for (const std::string& name : outputs_) {
      if (const auto before = tensors_.find(name + "_before"); adds_ && before != tensors_.end())
        y[name] = before->second;
    }
    for_each_pair([&](const Pair& pair) { add_pair(pair, y); });
    return y;
  }

  // The sum of dout * out, whose derivatives backward returns.
  double loss() const {
    double sum = 0;
    for_each_pair([&](const Pair& pair) { sum += pair.value * pair.factor * pair.dp; });
    return sum;
  }

 protected:
  struct Pair {
    SequenceRows rows;
    int64_t head, i, j;
    int64_t query, key, q, k, v, out;  // rows, and where tensors have them
    double x;                          // the product and the bias
    double value, slope, dp, factor;   // slope: dy/ds
  };

  virtual double argument(const Pair& pair) const = 0;                    // s
  virtual double slope_of_product(const Pair&) const { return alpha(); }  // ds/dx
  // `ds` is the derivative of the loss with respect to s.
  virtual void add_gradients(const Pair& pair, double ds, Tensors& y) const = 0;

  double alpha() const { return call_.alpha; }
  int64_t heads() const { return call_.params.heads; }
  double read(const char* name, int64_t place) const { return tensors_.at(name)[static_cast<size_t>(place)]; }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  // Reads a tensor of rows.
  double read_row(const char* name, const Pair& pair, int64_t position) const {
    return position < 0 || position >= pair.rows.n ? 0 : read(name, pair.rows.first + position);
  }
  static void add(std::vector<double>& to, int64_t place, double value) {
    if (to.size() <= static_cast<size_t>(place)) to.resize(static_cast<size_t>(place) + 1);
    to[static_cast<size_t>(place)] += value;
  }

 private:
  static double dot(const double* x, const double* y, int64_t width) {
    double sum = 0;
    for (int64_t d = 0; d < width; ++d) sum += x[d] * y[d];
    return sum;
  }

  Pair pair_of(const SequenceRows& rows, int64_t head, int64_t i, int64_t j) const {
    const int64_t attn = call_.params.attn_dim, hidden = call_.params.hidden_dim;
    Pair pair{};
    pair.rows = rows;
    pair.head = head;
    pair.i = i;
    pair.j = j;
    pair.query = rows.first_query + i - (rows.n - rows.queries);
    pair.key = rows.first + j;
    pair.q = call_.place(pair.query, head, attn);
    pair.k = call_.place(pair.key, head, attn);
    pair.v = call_.place(pair.key, head, hidden);
    pair.out = call_.place(pair.query, head, hidden);
    pair.x = dot(call_.q + pair.q, call_.k + pair.k, attn) + call_.bias(rows.b, head, i, j);
    pair.value = std::tanh(argument(pair));
    pair.slope = 1 - pair.value * pair.value;
    pair.factor = call_.factor(pair.query);
    pair.dp = call_.dout == nullptr ? 0 : dot(call_.dout + pair.out, call_.v + pair.v, hidden);
    return pair;
  }

  template <class Body>
  void for_each_pair(const Body& body) const {
    for (int64_t b = 0; b < call_.sequences(); ++b) {
      std::vector<bool> chosen(static_cast<size_t>(call_.sequences()));
      chosen[static_cast<size_t>(b)] = true;
      std::vector<SequenceRows> heads(static_cast<size_t>(call_.params.heads));
      call_.for_each_head(chosen,
                          [&](const SequenceRows& rows, int64_t head) { heads[static_cast<size_t>(head)] = rows; });
      for (int64_t head = 0; head < call_.params.heads; ++head) {
        const SequenceRows& rows = heads[static_cast<size_t>(head)];
        for (int64_t i = std::max<int64_t>(rows.n - rows.queries, 0); i < rows.n; ++i) {
          for (int64_t j = 0; j < rows.n; ++j) {
            if (hstu_attention_valid(call_.params, i, j, rows.n, rows.t, rows.c)) body(pair_of(rows, head, i, j));
          }
        }
      }
    }
  }

  static void add(std::vector<double>& to, int64_t place, double factor, const double* from, int64_t width) {
    for (int64_t d = 0; d < width; ++d) add(to, place + d, factor * from[d]);
  }

  void add_pair(const Pair& pair, Tensors& y) const {
    const int64_t attn = call_.params.attn_dim, hidden = call_.params.hidden_dim;
    if (call_.dout == nullptr) return add(y["out"], pair.out, pair.value * pair.factor, call_.v + pair.v, hidden);
    const double ds = pair.dp * pair.slope * pair.factor, dx = slope_of_product(pair) * ds;
    add(y["dq"], pair.q, dx, call_.k + pair.k, attn);
    add(y["dk"], pair.k, dx, call_.q + pair.q, attn);
    add(y["dv"], pair.v, pair.value * pair.factor, call_.dout + pair.out, hidden);
    add_gradients(pair, ds, y);
    if (call_.returns_dbias) add(y["drab"], call_.bias_at(pair.rows.b, pair.head, pair.i, pair.j), dx);
    if (call_.returns_dfactors) add(y["dattn_scale"], call_.factor_at(pair.query), pair.value * pair.dp);
  }

  const AttentionCall call_;
  const bool adds_;
  Tensors tensors_;
  std::vector<std::string> outputs_;
};

// Tolerance, as a share of the largest number of a tensor.
inline double tolerance(const HstuAttentionParams& params) {
  if (params.dtype == DataType::kFp32) return params.precision == MatmulPrecision::kIeee ? 2e-5 : 2e-3;
  return params.dtype == DataType::kFp16 ? 3e-3 : 2e-2;
}

template <class Formula>
std::string mistakes_of(HostCall& call, const AttentionSpec& spec, Direction direction) {
  std::string mistakes;
  const Tensors expected = Formula(spec, direction, call.inputs()).outputs();
  for (const Argument& argument : spec.signature(direction)) {
    if (argument.role != ArgumentRole::kOutput) continue;
    const std::vector<double> actual = call.read(argument.name).reals;
    std::vector<double> values = expected.at(argument.name);
    values.resize(actual.size());
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 0) << argument.name;
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::abs(actual[i] - values[i]) <= tolerance(spec.params()) * largest) continue;
      mistakes +=
          fmt::format("{}[{}] is {}, not {}; the largest is {}\n", argument.name, i, actual[i], values[i], largest);
      break;
    }
  }
  return mistakes;
}

// One row, tiles of 16, 32 and 64 rows and one more or less, empty ones.
inline Lengths lengths_of(int64_t max) {
  return {.rows = {1, 33, 0, max, 64, 31}, .num_targets = {1, 5, 0, 21, 16, 0}, .max_seq_len = max};
}

inline Lengths last_rows_of(int64_t max) {
  Lengths lengths = lengths_of(max);
  lengths.other_rows["Lq"] = {1, 20, 3, 33, 64, 40};
  return lengths;
}

}  // namespace hstujit
