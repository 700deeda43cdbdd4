// A score that depends on positions: its region functions, and its kernels as NVRTC compiles them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/emit/region_printer.h"
#include "compiler/ir/region_functions.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/plan/search_space.h"
#include "mlir/IR/Verifier.h"
#include "tests/nvrtc/kept_results.h"
#include "tests/passes/attention_cases.h"
#include "tests/passes/evaluate.h"
#include "tests/score/positional_score.h"

namespace hstujit {
namespace {

TEST(PositionalScore, FunctionsEqualTheFormula) {
  const auto context = make_context();
  Module module = positional_module(*context, HstuAttentionSpec(attention_params()));
  ASSERT_TRUE(succeeded(mlir::verify(*module)));
  ASSERT_TRUE(run_passes(*module).ok());
  Evaluator<double> score(module->lookupSymbol<mlir::func::FuncOp>(kScore));
  Evaluator<double> grad(module->lookupSymbol<mlir::func::FuncOp>(kScoreGrad));
  for (int64_t row = 0; row < 9; ++row) {
    for (int64_t col = 0; col <= row; ++col) {
      const PositionalScore at = {row, col, 9 + row % 3, col % 5, row % 2};
      const auto real = [](int64_t integer) { return static_cast<double>(integer); };
      const std::vector<double> arguments = {1.5,        real(at.row),  real(at.col), real(at.n),
                                             real(at.t), real(at.head), 0.25};
      EXPECT_NEAR(score.reals(arguments)[0], at.value(0.25, 1.5), 1e-12);
      EXPECT_NEAR(grad.reals(arguments)[0], at.value(0.25, 1.5), 1e-12);
      EXPECT_NEAR(grad.reals(arguments)[1], at.derivative(0.25, 1.5), 1e-12);
    }
  }
}

// Positions that a score does not ask for leave no more than an unnamed parameter.
TEST(PositionalScore, BuiltInScoresDoNotAsk) {
  for (const std::string& name : all_scores()) {
    HstuAttentionParams params = attention_params();
    params.score = name;
    Regions regions = build_regions(params);
    for (const llvm::StringLiteral function : {kScore, kScoreGrad}) {
      const auto printed = print_region(regions.function(function), Activation::kMufu);
      ASSERT_TRUE(printed.ok()) << printed.status().message();
      EXPECT_NE(printed->find("(float x, const At&, const Params& params"), std::string::npos) << *printed;
      EXPECT_EQ(printed->find("pair"), std::string::npos) << *printed;
    }
  }
}

// The config of each skeleton that is expected to be the fastest.
std::vector<KernelConfig> configs_of(const OpSpec& spec, Direction direction, const DeviceSpec& device) {
  std::map<std::string, KernelConfig> by_skeleton;
  for (const Candidate& candidate : search_space(spec, direction, device, {.max_seq_len = 1024}).candidates)
    by_skeleton.emplace(candidate.config.skeleton, candidate.config);
  std::vector<KernelConfig> configs;
  for (const auto& [skeleton, config] : by_skeleton) configs.push_back(config);
  return configs;
}

TEST(PositionalScore, KernelsCompile) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  HstuAttentionParams params = attention_params();
  params.num_targets = true;
  params.rab_heads = 1;
  params.attn_scale = "rows";
  const HstuAttentionSpec spec(params);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const DeviceSpec device = *known_device(arch);
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      for (const KernelConfig& config : configs_of(spec, direction, device)) {
        SCOPED_TRACE(fmt::format("{} {} {}", arch, to_string(direction), describe(config)));
        const auto kernel = emit_positional(spec, direction, config, device);
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        const char* function =
            direction == Direction::kForward
                ? " float score(float x, const At& at, const Params& params) {\n  const auto pair = at();\n"
                : " void score_grad(float x, const At& at, const Params& params, float& y, float& dy) {";
        EXPECT_NE(kernel->source.find(function), std::string::npos);
        std::string log;
        const auto output =
            compile_once(kept_cubins(), **nvrtc, compile_input(kernel->source, kernel->plan, device.arch), &log);
        EXPECT_TRUE(output.ok()) << (output.ok() ? "" : output.status().message()) << log;
        if (!output.ok()) continue;
        // A skeleton counts the registers of built-in scores: others may spill. Products must not wait.
        for (const KernelReject& reject : output->rejects) EXPECT_EQ(reject.reason, "spill") << reject.detail;
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
