// A new operand with an element for each row, declared here and nowhere else: attention whose score reads it, forward
// and backward, on the host and in emulation of every template, against float64, and as NVRTC compiles it.
//
//   y = tanh(alpha x + a[row] b[col, head] + a[col] / 4 + (days[row + 1] - days[col]) / 1024)
//
// `a` (L) and `b` (L, H) have gradients, `days` (L) are integers. The element behind a sequence's last one reads 0.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/host/kernel.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/passes/passes.h"
#include "compiler/plan/search_space.h"
#include "tests/nvrtc/kept_results.h"
#include "tests/score/operand_formula.h"

namespace hstujit {
namespace {

std::vector<Operand> declared(int64_t heads, DataType dtype, bool gradient) {
  const auto row = [&](const char* name, DataType type, int64_t own_heads, bool has_gradient) {
    return Operand{.name = name,
                   .kind = &row_kind(),
                   .use = OperandUse::kScore,
                   .dtype = type,
                   .heads = own_heads,
                   .gradient = has_gradient};
  };
  return {row("a", DataType::kFp32, 0, gradient), row("b", dtype, heads, gradient),
          row("days", DataType::kInt64, 0, false)};
}

WithOperandsPtr with_rows(const Json& changes, bool gradient = true) {
  const OpSpecPtr parsed = make_spec(with(base(), changes));
  const auto& attention = static_cast<const AttentionSpec&>(*parsed);
  const HstuAttentionParams& params = attention.params();
  return std::make_shared<WithOperands>(params, attention.query_rows(), declared(params.heads, params.dtype, gradient));
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

class Formula final : public OperandFormula {
 public:
  using OperandFormula::OperandFormula;

 private:
  int64_t place_of_b(const Pair& pair) const { return pair.key * heads() + pair.head; }

  double argument(const Pair& pair) const override {
    return alpha() * pair.x + read_row("a", pair, pair.i) * read("b", place_of_b(pair)) +
           read_row("a", pair, pair.j) / 4 +
           (read_row("days", pair, pair.i + 1) - read_row("days", pair, pair.j)) / 1024;
  }
  void add_gradients(const Pair& pair, double ds, Tensors& y) const override {
    add(y["da"], pair.rows.first + pair.i, ds * read("b", place_of_b(pair)));
    add(y["da"], pair.key, ds / 4);
    add(y["db"], place_of_b(pair), ds * read_row("a", pair, pair.i));
  }
};

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
  const auto kernel = JitKernel::create(*module_of(*context, *spec, build_score_of_rows), spec, direction, 2,
                                        kept_objects(*spec, direction));
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  HostCall call(spec, lengths, 7, 0, direction);
  call.pack_inputs();
  const Status status = kernel->launch(call.values().data(), call.values().size());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(mistakes_of<Formula>(call, *spec, direction), "");
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
  auto emitted = emit_with(build_score_of_rows, *spec, direction, config, *known_device("sm_90a"));
  // As in Case.
  while (!emitted.ok() && config.attention().blocks_per_sm < AttentionConfig::kMaxBlocksPerSm) {
    ++config.attention().blocks_per_sm;
    emitted = emit_with(build_score_of_rows, *spec, direction, config, *known_device("sm_90a"));
  }
  ASSERT_TRUE(emitted.ok()) << emitted.status().message();
  const EmulatedKernel kernel(*emitted);
  HostCall call(spec, lengths, 7, 16, direction);
  call.pack_inputs();
  kernel.launch(call.values(), 1, 1);
  EXPECT_EQ(mistakes_of<Formula>(call, *spec, direction), "");
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
        const auto kernel = emit_with(build_score_of_rows, *spec, direction, candidate.config, device);
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        std::string log;
        const auto output =
            compile_once(kept_cubins(), **nvrtc, compile_input(kernel->source, kernel->plan, device.arch), &log);
        EXPECT_TRUE(output.ok()) << (output.ok() ? "" : output.status().message()) << log;
      }
    }
  }
  EXPECT_GE(compiled.size(), 7U);
}

// A gradient that cannot be summed is refused with a sentence.
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
