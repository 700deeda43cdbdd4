// A new operand with an element for each row, declared here and nowhere else: attention whose score reads it, forward
// and backward, on the host and in emulation of every template, against float64, and as NVRTC compiles it.
//
//   y = tanh(alpha x + a[row] b[col, head] + a[col] / 4 + (days[row + 1] - days[col]) / 1024)
//
// `a` (L) and `b` (L, H) have gradients, `days` (L) are integers. The element behind a sequence's last one reads 0.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "compiler/emit/source.h"
#include "compiler/host/kernel.h"
#include "compiler/ir/attention.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/passes/passes.h"
#include "compiler/plan/search_space.h"
#include "compiler/spec/operators/hstu_attention/attention_call.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "tests/emulation/attention_case.h"
#include "tests/nvrtc/kept_results.h"

namespace hstujit {
namespace {

std::vector<Operand> declared(int64_t heads, DataType dtype, bool gradient) {
  const auto row = [&](const char* name, DataType type, int64_t own_heads, bool has_gradient) {
    return Operand{.name = name,
                   .kind = &row_kind(),
                   .use = OperandUse::kScore,
                   .dtype = type,
                   .heads = own_heads,
                   .gradient = has_gradient,
                   .kernel_suffix = std::string("_") + name};
  };
  return {row("a", DataType::kFp32, 0, gradient), row("b", dtype, heads, gradient),
          row("days", DataType::kInt64, 0, false)};
}

class WithRows final : public AttentionSpec {
 public:
  WithRows(const HstuAttentionParams& params, QueryRows rows, bool gradient)
      : AttentionSpec(params, rows, declared(params.heads, params.dtype, gradient)) {}
  std::string_view op() const override { return "hstu_attention"; }
  nlohmann::ordered_json to_json() const override { return HstuAttentionSpec(params()).to_json(); }
};

std::shared_ptr<const WithRows> with_rows(const Json& changes, bool gradient = true) {
  const OpSpecPtr parsed = make_spec(with(base(), changes));
  const auto& attention = static_cast<const AttentionSpec&>(*parsed);
  return std::make_shared<WithRows>(attention.params(), attention.query_rows(), gradient);
}

mlir::Value build_score_of_rows(Ops& ops, const ScoreArguments& given) {
  const mlir::Value next = ops.add(given.row, ops.integer(1));
  const mlir::Value days = ops.sub(given.read(ops, "days", next), given.read(ops, "days", given.col));
  const mlir::Value age =
      mlir::arith::SIToFPOp::create(ops.builder(), ops.location(), ops.builder().getF32Type(), days);
  mlir::Value s = ops.mulf(given.x, given.scalars.at("alpha"));
  s = ops.addf(s, ops.mulf(given.read(ops, "a", given.row), given.read(ops, "b", given.col)));
  s = ops.addf(s, ops.mulf(given.read(ops, "a", given.col), ops.real(0.25)));
  return ops.tanh(ops.addf(s, ops.mulf(age, ops.real(1.0 / 1024))));
}

Module module_of(mlir::MLIRContext& context, const AttentionSpec& spec) {
  auto module = build_attention(context, spec, build_score_of_rows);
  if (!module.ok()) throw std::runtime_error(module.status().message());
  return std::move(*module);
}

Result<EmittedKernel> emit(const AttentionSpec& spec, Direction direction, const KernelConfig& config,
                           const DeviceSpec& device) {
  const auto context = make_context();
  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(config.skeleton));
  return emit_module(*module_of(*context, spec), *skeleton, embedded_templates(), operator_schema(spec.op()), spec,
                     direction, config, device);
}

using Tensors = std::map<std::string, std::vector<double>>;

// The call in float64.
class Formula {
 public:
  Formula(const AttentionSpec& spec, Direction direction, const std::vector<HostValue>& values)
      : call_(spec, direction, values), adds_(spec.params().adds_gradients) {
    const Signature signature = spec.signature(direction);
    for (size_t i = 0; i < signature.size(); ++i) {
      const HostTensor& tensor = values[i].tensor;
      tensors_[signature[i].name] =
          tensor.integers.empty() ? tensor.reals : std::vector<double>(tensor.integers.begin(), tensor.integers.end());
    }
  }

  std::vector<double>& tensor(const std::string& name) { return tensors_.at(name); }

  // Everything that the direction returns. Each sequence and head in turn: gradients are sums over them.
  Tensors outputs() const {
    Tensors y;
    if (adds_) {
      for (const char* name : {"da", "db", "drab", "dattn_scale"}) {
        if (const auto before = tensors_.find(std::string(name) + "_before"); before != tensors_.end())
          y[name] = before->second;
      }
    }
    for_each_pair([&](const SequenceRows& rows, int64_t head, int64_t i, int64_t j) { add_pair(rows, head, i, j, y); });
    return y;
  }

  // The sum of dout * out, whose derivatives backward returns.
  double loss() const {
    double sum = 0;
    for_each_pair([&](const SequenceRows& rows, int64_t head, int64_t i, int64_t j) {
      const Pair pair = pair_of(rows, head, i, j);
      sum += pair.value * pair.factor * pair.dp;
    });
    return sum;
  }

 private:
  struct Pair {
    int64_t query, key, q, k, v, out;  // rows, and where tensors have them
    double value, slope, dp, factor;
  };

  double read(const char* name, const SequenceRows& rows, int64_t position) const {
    if (position < 0 || position >= rows.n) return 0;
    return tensors_.at(name)[static_cast<size_t>(rows.first + position)];
  }
  size_t place_of_b(int64_t row, int64_t head) const { return static_cast<size_t>(row * call_.params.heads + head); }

  static double dot(const double* x, const double* y, int64_t width) {
    double sum = 0;
    for (int64_t d = 0; d < width; ++d) sum += x[d] * y[d];
    return sum;
  }

  Pair pair_of(const SequenceRows& rows, int64_t head, int64_t i, int64_t j) const {
    const int64_t attn = call_.params.attn_dim, hidden = call_.params.hidden_dim;
    Pair pair{};
    pair.query = rows.first_query + i - (rows.n - rows.queries);
    pair.key = rows.first + j;
    pair.q = call_.place(pair.query, head, attn);
    pair.k = call_.place(pair.key, head, attn);
    pair.v = call_.place(pair.key, head, hidden);
    pair.out = call_.place(pair.query, head, hidden);
    const double x = dot(call_.q + pair.q, call_.k + pair.k, attn) + call_.bias(rows.b, head, i, j);
    const double t = std::tanh(call_.alpha * x + read("a", rows, i) * tensors_.at("b")[place_of_b(pair.key, head)] +
                               read("a", rows, j) / 4 + (read("days", rows, i + 1) - read("days", rows, j)) / 1024);
    pair.value = t;
    pair.slope = 1 - t * t;
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
            if (hstu_attention_valid(call_.params, i, j, rows.n, rows.t)) body(rows, head, i, j);
          }
        }
      }
    }
  }

  static void add(std::vector<double>& to, int64_t place, double value) {
    if (to.size() <= static_cast<size_t>(place)) to.resize(static_cast<size_t>(place) + 1);
    to[static_cast<size_t>(place)] += value;
  }
  static void add(std::vector<double>& to, int64_t place, double factor, const double* from, int64_t width) {
    for (int64_t d = 0; d < width; ++d) add(to, place + d, factor * from[d]);
  }

  void add_pair(const SequenceRows& rows, int64_t head, int64_t i, int64_t j, Tensors& y) const {
    const int64_t attn = call_.params.attn_dim, hidden = call_.params.hidden_dim;
    const Pair pair = pair_of(rows, head, i, j);
    if (call_.dout == nullptr) return add(y["out"], pair.out, pair.value * pair.factor, call_.v + pair.v, hidden);
    const double ds = pair.dp * pair.slope * pair.factor;
    add(y["dq"], pair.q, call_.alpha * ds, call_.k + pair.k, attn);
    add(y["dk"], pair.k, call_.alpha * ds, call_.q + pair.q, attn);
    add(y["dv"], pair.v, pair.value * pair.factor, call_.dout + pair.out, hidden);
    add(y["da"], rows.first + i, ds * tensors_.at("b")[place_of_b(pair.key, head)]);
    add(y["da"], pair.key, ds / 4);
    add(y["db"], static_cast<int64_t>(place_of_b(pair.key, head)), ds * read("a", rows, i));
    if (call_.returns_dbias) add(y["drab"], call_.bias_at(rows.b, head, i, j), call_.alpha * ds);
    if (call_.returns_dfactors) add(y["dattn_scale"], call_.factor_at(pair.query), pair.value * pair.dp);
  }

  const AttentionCall call_;
  const bool adds_;
  Tensors tensors_;
};

// Of the largest number of a tensor.
double tolerance(const HstuAttentionParams& params) {
  if (params.dtype == DataType::kFp32) return params.precision == MatmulPrecision::kIeee ? 2e-5 : 2e-3;
  return params.dtype == DataType::kFp16 ? 3e-3 : 2e-2;
}

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
Lengths lengths_of(int64_t max) {
  return {.rows = {1, 33, 0, max, 64, 31}, .num_targets = {1, 5, 0, 21, 16, 0}, .max_seq_len = max};
}

Lengths last_rows_of(int64_t max) {
  Lengths lengths = lengths_of(max);
  lengths.other_rows["Lq"] = {1, 20, 3, 33, 64, 40};
  return lengths;
}

const Json kTargets = {{"num_targets", true}};
const Json kExact = {{"num_targets", true}, {"dtype", "fp32"}, {"precision", "ieee"}};
const Json kOthers = {{"num_targets", true}, {"rab_heads", 1}, {"attn_scale", "rows"}};
const Json kAdding = {{"num_targets", true}, {"rab_heads", 2}, {"attn_scale", "scalar"}, {"adds_gradients", true}};
const Json kLastRows = {{"op", "delta_hstu_attention"}, {"jagged_queries", true}, {"num_targets", true}};

void check_host(const Json& changes, Direction direction, const Lengths& lengths, bool gradient = true) {
  const auto spec = with_rows(changes, gradient);
  SCOPED_TRACE(changes.dump());
  const auto context = make_context();
  prepare_context(*context);
  const auto kernel = JitKernel::create(*module_of(*context, *spec), spec, direction, 2);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  HostCall call(spec, lengths, 7, 0, direction);
  call.pack_inputs();
  const Status status = kernel->launch(call.values().data(), call.values().size());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(mistakes_of(call, *spec, direction), "");
}

TEST(RowOperand, OnTheHost) {
  for (const Json& changes :
       {kExact, with(kExact, kOthers), with(kExact, kAdding), with(kTargets, {{"causal", false}})})
    for (const Direction direction : {Direction::kForward, Direction::kBackward})
      check_host(changes, direction, lengths_of(300));
  check_host(with(kLastRows, kExact), Direction::kForward, last_rows_of(300), false);
}

// The gradients of operands are what differences of the loss in float64 say.
TEST(RowOperand, GradientsAreDifferencesOfTheLoss) {
  const auto spec = with_rows(with(kExact, kOthers));
  const Lengths lengths = {.rows = {7, 19}, .num_targets = {2, 3}, .max_seq_len = 19};
  HostCall call(spec, lengths, 7, 0, Direction::kBackward);
  Formula formula(*spec, Direction::kBackward, call.inputs());
  const Tensors gradients = formula.outputs();
  for (const std::string name : {"a", "b"}) {
    for (size_t i = 0; i < formula.tensor(name).size(); ++i) {
      constexpr double kStep = 1e-5;
      double& element = formula.tensor(name)[i];
      const double before = element;
      element = before + kStep;
      const double above = formula.loss();
      element = before - kStep;
      const double difference = (above - formula.loss()) / (2 * kStep);
      element = before;
      EXPECT_NEAR(gradients.at("d" + name)[i], difference, 1e-6 * std::max(1.0, std::abs(difference))) << name << i;
    }
  }
}

void check(const Json& changes, Direction direction, KernelConfig config, const Lengths& lengths) {
  const auto spec = with_rows(changes, !changes.contains("jagged_queries"));
  if (config.skeleton.empty())
    config.skeleton = direction == Direction::kForward ? "attention/sm80_forward" : "attention/sm80_backward";
  config.attention().activation = "accurate";
  SCOPED_TRACE(changes.dump() + " " + describe(config));
  auto emitted = emit(*spec, direction, config, *known_device("sm_90a"));
  // As in Case.
  while (!emitted.ok() && config.attention().blocks_per_sm < AttentionConfig::kMaxBlocksPerSm) {
    ++config.attention().blocks_per_sm;
    emitted = emit(*spec, direction, config, *known_device("sm_90a"));
  }
  ASSERT_TRUE(emitted.ok()) << emitted.status().message();
  const EmulatedKernel kernel(*emitted);
  HostCall call(spec, lengths, 7, 16, direction);
  call.pack_inputs();
  kernel.launch(call.values(), 1, 1);
  EXPECT_EQ(mistakes_of(call, *spec, direction), "");
}

TEST(RowOperand, Ampere) {
  for (const Json& type : {kExact, kTargets}) {
    check(type, Direction::kForward, ampere_tile(32, 2, 32, 2), lengths_of(71));
    check(type, Direction::kBackward, ampere_tile(32, 2, 32, 2), lengths_of(71));
  }
  check(kOthers, Direction::kBackward, ampere_tile(64, 2, 16, 1), lengths_of(71));
  check(kAdding, Direction::kBackward, ampere_tile(64, 2, 16, 1), lengths_of(71));
  check(kLastRows, Direction::kForward, ampere_tile(32, 2, 32, 2), last_rows_of(71));
}

TEST(RowOperand, Hopper) {
  check(kTargets, Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "persistent"), lengths_of(200));
  check(kOthers, Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "grid"), lengths_of(200));
  check(kOthers, Direction::kBackward, hopper_tile("sm90_backward_twopass", 2, 64, 2, "grid"), lengths_of(200));
  check(kTargets, Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, "semaphore"), lengths_of(200));
}

TEST(RowOperand, KernelsCompile) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const auto spec = with_rows(with(kOthers, {{"attn_dim", 64}, {"hidden_dim", 64}}));
  std::set<std::string> compiled;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const DeviceSpec device = *known_device(arch);
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      for (const Candidate& candidate : search_space(*spec, direction, device, {.max_seq_len = 1024}).candidates) {
        if (!compiled.insert(arch + candidate.config.skeleton).second) continue;
        SCOPED_TRACE(fmt::format("{} {}", arch, describe(candidate.config)));
        const auto kernel = emit(*spec, direction, candidate.config, device);
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        std::string log;
        const auto output =
            compile_once(KeptResults(), **nvrtc, compile_input(kernel->source, kernel->plan, device.arch), &log);
        EXPECT_TRUE(output.ok()) << (output.ok() ? "" : output.status().message()) << log;
      }
    }
  }
  EXPECT_GE(compiled.size(), 7U);
}

// What cannot be summed is refused with a sentence.
TEST(RowOperand, AGradientNeedsTheRowOrTheColumn) {
  const auto spec = with_rows(kTargets);
  const auto context = make_context();
  auto module = build_attention(*context, *spec, [](Ops& ops, const ScoreArguments& given) {
    return ops.addf(given.x, given.read(ops, "a", ops.sub(given.row, ops.integer(1))));
  });
  ASSERT_TRUE(module.ok());
  EXPECT_NE(run_passes(**module).message().find("reads a, whose gradient is asked for, at a position"),
            std::string::npos);
}

}  // namespace
}  // namespace hstujit
