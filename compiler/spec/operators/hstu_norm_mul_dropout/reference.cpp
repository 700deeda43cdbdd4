// The float64 reference of one row, from docs/ops.md.
#include <cmath>

#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"
#include "compiler/spec/philox.h"

namespace hstujit {

namespace {

using GateParams = HstuNormMulDropoutParams;

// A value and its derivative.
struct Activation {
  double value, slope;
};

Activation identity(double u) { return {u, 1}; }
Activation silu(double u) { return {u * sigmoid(u), silu_slope(u)}; }
Activation gate(double u) { return {sigmoid(u), sigmoid_slope(u)}; }

auto activation_of(const std::string& name) { return name == "silu" ? silu : name == "sigmoid" ? gate : identity; }

// What dropout multiplies a column of the result with.
class Dropout {
 public:
  Dropout(const GateParams& params, const ReferenceRow& row) {
    if (!params.dropout) return;
    const auto integer = [&](const char* name) {
      return static_cast<uint64_t>(static_cast<int64_t>(row.scalar(name)));
    };
    drops_ = true;
    ratio_ = std::nearbyint(static_cast<float>(row.scalar("dropout_ratio")) * 0x1p16) * 0x1p-16;
    seed_ = integer("seed");
    offset_ = integer("offset");
    first_ = static_cast<uint64_t>(row.number() * params.columns());
  }

  double operator()(size_t column) const {
    if (!drops_) return 1;
    return philox_uniform(seed_, offset_, first_ + column) >= ratio_ ? 1 / (1 - ratio_) : 0;
  }

 private:
  bool drops_ = false;
  double ratio_ = 0;
  uint64_t seed_ = 0, offset_ = 0, first_ = 0;
};

}  // namespace

void HstuNormMulDropoutSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const GateParams& p = params_;
  const std::span<const double> x = row.input("x"), u = row.input("u"), weight = row.input("weight");
  const size_t width = x.size(), group = width / static_cast<size_t>(p.groups());
  const std::vector<double> zeros(width);
  const std::span<const double> bias = p.has_bias() ? row.input("bias") : std::span<const double>(zeros);
  const auto multiplying = activation_of(p.mul_u_activation), concatenated = p.silu_u ? silu : identity;
  const auto first_x = static_cast<size_t>(p.first_x()), first_y = static_cast<size_t>(p.first_product());
  const Dropout kept(p, row);

  // Of each column: the normalised x, that with weight and bias, and where its weight and bias are.
  std::vector<NormedElements> groups;
  std::vector<double> n, z(width);
  std::vector<size_t> place(width);
  for (size_t begin = 0; begin < width; begin += group) {
    groups.push_back(norm_of(p.row_norm(), x.subspan(begin, group), row.scalar("eps")));
    n.insert(n.end(), groups.back().n.begin(), groups.back().n.end());
  }
  for (size_t i = 0; i < width; ++i) {
    place[i] = p.group_norm ? i / group : i;
    z[i] = n[i] * weight[place[i]] + bias[place[i]];
  }
  const std::string_view product = p.columns() == p.width ? "dout" : "dout_y";

  if (direction == Direction::kForward) {
    const std::span<double> out = row.output(product.substr(1));
    for (size_t i = 0; i < width; ++i) out[i] = multiplying(u[i]).value * z[i] * kept(first_y + i);
    if (p.concat_u) {
      const std::span<double> out_u = row.output("out_u");
      for (size_t i = 0; i < width; ++i) out_u[i] = concatenated(u[i]).value * kept(i);
    }
    if (p.concat_x) {
      const std::span<double> out_x = row.output("out_x");
      for (size_t i = 0; i < width; ++i) out_x[i] = x[i] * kept(first_x + i);
    }
    return;
  }

  const std::span<const double> dout = row.input(product);
  const std::span<double> dx = row.output("dx"), du = row.output("du"), dweight = row.output("dweight");
  const std::span<double> dx_terms = row.terms("dx"), du_terms = row.terms("du");
  std::vector<double> g(width), dz(width);
  for (size_t i = 0; i < width; ++i) {
    const double dy = dout[i] * kept(first_y + i), slope = multiplying(u[i]).slope;
    dz[i] = dy * multiplying(u[i]).value;
    g[i] = dz[i] * weight[place[i]];
    dweight[place[i]] += dz[i] * n[i];
    du[i] = dy * z[i] * slope;
    du_terms[i] = std::abs(dy * slope) * (std::abs(n[i] * weight[place[i]]) + std::abs(bias[place[i]]));
  }
  if (p.has_bias()) {
    const std::span<double> dbias = row.output("dbias");
    for (size_t i = 0; i < width; ++i) dbias[place[i]] += dz[i];
  }
  if (p.concat_u) {
    const std::span<const double> dout_u = row.input("dout_u");
    for (size_t i = 0; i < width; ++i) {
      const double added = dout_u[i] * kept(i) * concatenated(u[i]).slope;
      du[i] += added;
      du_terms[i] += std::abs(added);
    }
  }
  if (p.concat_x) {
    const std::span<const double> dout_x = row.input("dout_x");
    for (size_t i = 0; i < width; ++i) {
      dx[i] = dout_x[i] * kept(first_x + i);
      dx_terms[i] = std::abs(dx[i]);
    }
  }
  for (size_t begin = 0; begin < width; begin += group) {
    add_norm_gradient(p.row_norm(), groups[begin / group], std::span(g).subspan(begin, group), dx.subspan(begin, group),
                      dx_terms.subspan(begin, group));
  }
}

}  // namespace hstujit
