// Where the gradients of what a score reads follow from dS: the text of the score and its IR must agree on it, since a
// config is chosen by the one and its kernel printed from the other.
#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/passes.h"
#include "compiler/plan/search_space.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/score_sites.h"
#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

constexpr const char* kOperands =
    "ts: row(int64), w: table(9, grad), near: table(5, heads), slope: head(grad), gain: scalar(grad), gate: row(grad)";

struct Score {
  const char* text;
  bool adds;
};

struct OwnScore {
  const char *operands, *text;
  bool shares;
};

Json instance(const char* score) {
  // Every operand is read: those that do not matter, in a term without sites.
  const std::string text = std::string(score) + " + 0.0 * (ts[row] - ts[col]) * gate[row] * near[row - col]";
  return with(base(), {{"dtype", "bf16"}, {"operands", kOperands}, {"score", text}});
}

TEST(SiteShare, TextAndIrAgree) {
  const Score scores[] = {
      {"silu(x + w[row - col] - slope * (row - col) + gain)", true},
      {"silu(w[row] + slope + (x + gain))", true},
      {"tanh(0.5 * (x + w[row - col] * slope + gain))", true},
      {"where(row < col, relu(x + w[0] + slope * gain), 0.0)", true},
      {"silu(x) + w[row - col] + slope + gain", false},        // not added to x
      {"silu(x + w[row - col] + slope) * gain", false},        // one of them is not
      {"silu(slope + gain + w[0] - x)", false},                // x is subtracted
      {"silu(x + w[row - col] + slope) + gain * x", false},    // x is used twice
      {"silu(2.0 * x + w[row - col] + slope + gain)", false},  // x has a factor
  };
  for (const auto& [text, adds] : scores) {
    SCOPED_TRACE(text);
    const OpSpecPtr spec = make_spec(instance(text));
    const auto& attention = static_cast<const AttentionSpec&>(*spec);
    EXPECT_EQ(sites_add_to_x(parse_score(attention.params()).value(), attention.operands()), adds);
    const auto context = make_context();
    Module module = build_module(*context, *spec).value();
    ASSERT_TRUE(run_passes(*module, Direction::kBackward).ok());
    EXPECT_EQ(module->lookupSymbol(kScoreGradX) != nullptr, adds);
    EXPECT_EQ(module->lookupSymbol(score_share("w", 0)) != nullptr, adds);
  }
}

// Sites in what heads share, and nowhere else: kernels are printed from the IR's functions where the text says so.
TEST(SiteShare, TextAndIrAgreeOnWhatHeadsShare) {
  const OwnScore scores[] = {
      {"ts: row(int64), w: table(9, grad), gain: scalar(grad)",
       "silu(x + w[row - col] + gain * pow(1.0 + abs(ts[row] - ts[col]), -0.5))", true},
      {"ts: row(int64), w: table(9, grad)", "silu(x) * head + w[int(log(1.0 + abs(ts[row + 1] - ts[col])) / 0.301)]",
       true},
      // One of them is not.
      {"ts: row(int64), w: table(9, grad), gain: scalar(grad)",
       "silu(x + w[int(log(1.0 + abs(ts[row + 1] - ts[col])) / 0.301)]) * gain", false},
      // The head decides.
      {"ts: row(int64), w: table(9, grad), gain: scalar(grad)",
       "silu(x + w[head] + pow(1.0 + abs(ts[row] - ts[col]), -gain))", false},
      // Too little to share.
      {"gain: scalar(grad)", "silu(x + 0.5 * gain)", false},
  };
  for (const auto& [operands, text, shares] : scores) {
    SCOPED_TRACE(text);
    const OpSpecPtr spec = make_spec(with(base(), {{"dtype", "bf16"}, {"operands", operands}, {"score", text}}));
    EXPECT_EQ(static_cast<const AttentionSpec&>(*spec).shares_sites(), shares);
    const auto context = make_context();
    Module module = build_module(*context, *spec).value();
    ASSERT_TRUE(run_passes(*module, Direction::kBackward).ok());
    EXPECT_EQ(module->lookupSymbol(kValueSlope) != nullptr, shares);
  }
}

// Configs with site warps are offered where they may be.
TEST(SiteShare, ConfigsWithSiteWarps) {
  const DeviceSpec device = *known_device("sm_90a");
  const auto offered = [&](const Json& json) {
    const SearchSpace space = search_space(*make_spec(json), Direction::kBackward, device, {.max_seq_len = 1024});
    return std::ranges::count_if(
        space.candidates, [](const Candidate& candidate) { return candidate.config.attention().site_warps > 0; });
  };
  const Json adds = instance("silu(x + w[row - col] + slope + gain)"),
             other = instance("silu(x) + w[0] + slope + gain");
  EXPECT_GT(offered(adds), 0);
  EXPECT_GT(offered(with(base(), {{"dtype", "bf16"}, {"operands", "b: head(grad)"}, {"score", "silu(x + b)"}})), 0);
  EXPECT_EQ(offered(other), 0);
  EXPECT_EQ(offered(with(adds, {{"dtype", "fp16"}})), 0);
  EXPECT_EQ(offered(with(base(), {{"dtype", "bf16"}})), 0);
}

}  // namespace
}  // namespace hstujit
