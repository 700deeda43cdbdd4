// The float64 reference of one row, from docs/ops-rows.md.
#include <cmath>

#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"
#include "compiler/spec/philox.h"
#include "compiler/spec/row_reference.h"

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

// Factors by which dropout multiplies columns of the result.
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

// One row: what both directions compute with.
struct NormedRow {
  NormedRow(const GateParams& params, ReferenceRow& row)
      : x(row.input("x")),
        u(row.input("u")),
        weight(row.input("weight")),
        group(x.size() / static_cast<size_t>(params.groups())),
        multiplying(activation_of(params.mul_u_activation)),
        concatenated(params.silu_u ? silu : identity),
        first_x(static_cast<size_t>(params.first_x())),
        first_y(static_cast<size_t>(params.first_product())),
        kept(params, row),
        bias(x.size()),
        place(x.size()),
        z(x.size()) {
    if (params.has_bias()) bias.assign(row.input("bias").begin(), row.input("bias").end());
    for (size_t begin = 0; begin < x.size(); begin += group) {
      groups.push_back(norm_of(params.row_norm(), x.subspan(begin, group), row.scalar("eps")));
      n.insert(n.end(), groups.back().n.begin(), groups.back().n.end());
    }
    for (size_t i = 0; i < x.size(); ++i) {
      place[i] = params.group_norm ? i / group : i;
      z[i] = n[i] * weight[place[i]] + bias[place[i]];
    }
  }

  std::span<const double> x, u, weight;
  size_t group;  // columns of one
  Activation (*multiplying)(double);
  Activation (*concatenated)(double);
  size_t first_x, first_y;  // columns of the result where x and the product begin
  Dropout kept;
  std::vector<NormedElements> groups;
  std::vector<double> bias, n;  // of n each column is the normalised x,
  std::vector<size_t> place;    // and this is where its weight and bias are
  std::vector<double> z;        // n with weight and bias
};

std::string_view product_gradient(const GateParams& params) {
  return params.columns() == params.width ? "dout" : "dout_y";
}

void forward_row(const GateParams& params, const NormedRow& at, ReferenceRow& row) {
  const size_t width = at.x.size();
  const std::span<double> out = row.output(product_gradient(params).substr(1));
  for (size_t i = 0; i < width; ++i) out[i] = at.multiplying(at.u[i]).value * at.z[i] * at.kept(at.first_y + i);
  if (params.concat_u) {
    const std::span<double> out_u = row.output("out_u");
    for (size_t i = 0; i < width; ++i) out_u[i] = at.concatenated(at.u[i]).value * at.kept(i);
  }
  if (params.concat_x) {
    const std::span<double> out_x = row.output("out_x");
    for (size_t i = 0; i < width; ++i) out_x[i] = at.x[i] * at.kept(at.first_x + i);
  }
}

// Gradients of what the product multiplies but for x: du, dweight and dbias. Gives that of n.
std::vector<double> product_backward(const GateParams& params, const NormedRow& at, ReferenceRow& row) {
  const size_t width = at.x.size();
  const std::span<const double> dout = row.input(product_gradient(params));
  const std::span<double> du = row.output("du"), dweight = row.output("dweight"), du_terms = row.terms("du");
  const std::span<double> dbias = params.has_bias() ? row.output("dbias") : std::span<double>();
  std::vector<double> dn(width);
  for (size_t i = 0; i < width; ++i) {
    const size_t place = at.place[i];
    const Activation activation = at.multiplying(at.u[i]);
    const double dy = dout[i] * at.kept(at.first_y + i), dz = dy * activation.value;
    dn[i] = dz * at.weight[place];
    dweight[place] += dz * at.n[i];
    if (params.has_bias()) dbias[place] += dz;
    du[i] = dy * at.z[i] * activation.slope;
    du_terms[i] = std::abs(dy * activation.slope) * (std::abs(at.n[i] * at.weight[place]) + std::abs(at.bias[place]));
  }
  return dn;
}

void backward_row(const GateParams& params, const NormedRow& at, ReferenceRow& row) {
  const size_t width = at.x.size();
  const std::vector<double> dn = product_backward(params, at, row);
  const std::span<double> dx = row.output("dx"), dx_terms = row.terms("dx");
  if (params.concat_u) {
    const std::span<const double> dout_u = row.input("dout_u");
    const std::span<double> du = row.output("du"), du_terms = row.terms("du");
    for (size_t i = 0; i < width; ++i) {
      const double added = dout_u[i] * at.kept(i) * at.concatenated(at.u[i]).slope;
      du[i] += added;
      du_terms[i] += std::abs(added);
    }
  }
  if (params.concat_x) {
    const std::span<const double> dout_x = row.input("dout_x");
    for (size_t i = 0; i < width; ++i) {
      dx[i] = dout_x[i] * at.kept(at.first_x + i);
      dx_terms[i] = std::abs(dx[i]);
    }
  }
  for (size_t begin = 0; begin < width; begin += at.group) {
    add_norm_gradient(params.row_norm(), at.groups[begin / at.group], std::span(dn).subspan(begin, at.group),
                      dx.subspan(begin, at.group), dx_terms.subspan(begin, at.group));
  }
}

}  // namespace

void HstuNormMulDropoutSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const NormedRow at(params_, row);
  if (direction == Direction::kForward) {
    forward_row(params_, at, row);
  } else {
    backward_row(params_, at, row);
  }
}

const OperatorReference& reference_hstu_norm_mul_dropout() { return row_reference<HstuNormMulDropoutSpec>(); }

}  // namespace hstujit
