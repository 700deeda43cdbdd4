#include "tests/score/positional_score.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "compiler/spec/operators/hstu_attention/attention_call.h"

namespace hstujit {

namespace {

namespace arith = mlir::arith;

double dot(const double* a, const double* b, int64_t width) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d) sum += a[d] * b[d];
  return sum;
}

using Outputs = std::map<std::string, std::vector<double>>;

void add(std::vector<double>& to, int64_t place, double factor, const double* from, int64_t width) {
  for (int64_t d = 0; d < width; ++d) to[static_cast<size_t>(place + d)] += factor * from[d];
}

// One head of a sequence, all directions alike.
void attend(const AttentionCall& x, const SequenceRows& rows, int64_t head, Outputs& y) {
  const int64_t attn = x.params.attn_dim, hidden = x.params.hidden_dim;
  for (int64_t r = 0; r < rows.queries; ++r) {
    const int64_t i = rows.n - rows.queries + r, query = rows.first_query + r;
    const int64_t q = x.place(query, head, attn), out = x.place(query, head, hidden);
    for (int64_t j = 0; j < rows.n; ++j) {
      if (i < 0 || !hstu_attention_valid(x.params, i, j, rows.n, rows.t, rows.c)) continue;
      const int64_t k = x.place(rows.first + j, head, attn), v = x.place(rows.first + j, head, hidden);
      const double s = dot(x.q + q, x.k + k, attn) + x.bias(rows.b, head, i, j);
      const PositionalScore score = {i, j, rows.n, rows.t, head};
      const double factor = x.factor(query), value = score.value(x.alpha, s);
      if (x.dout == nullptr) {
        add(y["out"], out, value * factor, x.v + v, hidden);
        continue;
      }
      const double dp = dot(x.dout + out, x.v + v, hidden), ds = dp * score.derivative(x.alpha, s) * factor;
      add(y["dq"], q, ds, x.k + k, attn);
      add(y["dk"], k, ds, x.q + q, attn);
      add(y["dv"], v, value * factor, x.dout + out, hidden);
      if (x.returns_dbias) y["drab"][static_cast<size_t>(x.bias_at(rows.b, head, i, j))] += ds;
      if (x.returns_dfactors) y["dattn_scale"][static_cast<size_t>(x.factor_at(query))] += value * dp;
    }
  }
}

// Of the largest number of a tensor: products of 16-bit data have weights that are rounded to 16 bits.
double tolerance(const HstuAttentionParams& params) {
  if (params.dtype == DataType::kFp32) return params.precision == MatmulPrecision::kIeee ? 1e-5 : 2e-3;
  return params.dtype == DataType::kFp16 ? 3e-3 : 2e-2;
}

}  // namespace

double PositionalScore::value(double alpha, double x) const { return std::tanh(alpha * x + shift()) * weight(); }
double PositionalScore::derivative(double alpha, double x) const {
  const double t = std::tanh(alpha * x + shift());
  return alpha * (1 - t * t) * weight();
}

mlir::Value build_positional_score(Ops& ops, const ScoreArguments& a) {
  const auto real = [&](mlir::Value index) -> mlir::Value {
    mlir::OpBuilder& builder = ops.builder();
    const mlir::Value integer = arith::IndexCastOp::create(builder, ops.location(), builder.getI32Type(), index);
    return arith::SIToFPOp::create(builder, ops.location(), builder.getF32Type(), integer);
  };
  const auto rest = [&](mlir::Value index, int64_t divisor) -> mlir::Value {
    return arith::RemSIOp::create(ops.builder(), ops.location(), index, ops.integer(divisor));
  };
  const mlir::Value columns = ops.mul(a.col, ops.integer(3)), rows = ops.mul(a.n, ops.integer(5));
  const mlir::Value weight = ops.sub(rest(ops.add(a.row, ops.add(columns, rows)), 7), ops.integer(3));
  const mlir::Value shift = ops.sub(rest(a.t, 4), ops.add(a.head, a.head));
  const mlir::Value s = ops.fma(a.x, a.scalars.at("alpha"), ops.mulf(real(shift), ops.real(0.25)));
  return ops.mulf(ops.tanh(s), real(weight));
}

Module positional_module(mlir::MLIRContext& context, const OpSpec& spec) {
  auto module = build_attention(context, static_cast<const AttentionSpec&>(spec), build_positional_score);
  if (!module.ok()) throw std::runtime_error(module.status().message());
  return std::move(*module);
}

Result<EmittedKernel> emit_positional(const OpSpec& spec, Direction direction, const KernelConfig& config,
                                      const DeviceSpec& device) {
  const auto context = make_context();
  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(config.skeleton));
  return emit_module(*positional_module(*context, spec), *skeleton, embedded_templates(), operator_schema(spec.op()),
                     spec, direction, config, device);
}

std::string positional_mistakes(HostCall& call, const OpSpec& spec, Direction direction) {
  const auto& attention = static_cast<const AttentionSpec&>(spec);
  const AttentionCall reference(attention, direction, call.inputs());
  Outputs expected;
  for (const Argument& argument : spec.signature(direction)) {
    if (argument.role == ArgumentRole::kOutput) {
      expected[argument.name].resize(call.read(argument.name).reals.size());
    }
  }
  for (int64_t b = 0; b < reference.sequences(); ++b) {
    std::vector<bool> chosen(static_cast<size_t>(reference.sequences()));
    chosen[static_cast<size_t>(b)] = true;
    std::vector<std::pair<SequenceRows, int64_t>> heads(static_cast<size_t>(reference.params.heads));
    reference.for_each_head(
        chosen, [&](const SequenceRows& rows, int64_t head) { heads[static_cast<size_t>(head)] = {rows, head}; });
    for (const auto& [rows, head] : heads) attend(reference, rows, head, expected);
  }
  std::string mistakes;
  for (const auto& [name, values] : expected) {
    const std::vector<double> actual = call.read(name).reals;
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::abs(actual[i] - values[i]) <= tolerance(reference.params) * largest) continue;
      mistakes += fmt::format("{}[{}] is {}, not {}; the largest is {}\n", name, i, actual[i], values[i], largest);
      break;
    }
  }
  return mistakes;
}

}  // namespace hstujit
