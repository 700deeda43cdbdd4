// The presets of examples/presets against the formulas that they name, written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "compiler/spec/config.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"
#include "compiler/spec/operators/hstu_attention/score_formula.h"
#include "compiler/spec/random.h"
#include "tests/paths.h"

namespace hstujit {
namespace {

// A pair of a sequence, and the tensors that its score reads.
struct PresetPair {
  double x;
  int64_t row, col, n, targets, head, heads;
  std::map<std::string, HostTensor> tensors;

  double real(const std::string& name, int64_t index) const {
    return tensors.at(name).reals[static_cast<size_t>(index)];
  }
  int64_t time(int64_t index) const { return tensors.at("ts").integers[static_cast<size_t>(index)]; }
};

double silu_of(double x) { return x / (1 + std::exp(-x)); }
bool is_target(int64_t position, const PresetPair& p) { return position >= p.n - p.targets; }

// clamp(bucket(t[i + 1] - t[j]), 0, 128): the last row has its own time as the next one's.
int64_t bucket_of(const PresetPair& p) {
  const int64_t next = p.time(std::min(p.row + 1, p.n - 1));
  const double age = std::max(std::abs(static_cast<double>(next - p.time(p.col))), 1.0);
  return std::clamp<int64_t>(static_cast<int64_t>(std::log(age) / 0.301), 0, 128);
}

using Scores = std::map<std::string, std::function<double(const PresetPair&)>>;
const Scores kScores = {
    {"hstu_bias",
     [](const PresetPair& p) {
       return silu_of(p.x + p.real("pos_w", p.col - p.row + 211 - 1) + p.real("ts_w", bucket_of(p)));
     }},
    {"fuxi_alpha_latent", [](const PresetPair& p) { return silu_of(p.x); }},
    {"fuxi_alpha_position", [](const PresetPair& p) { return p.real("pos_w", p.col - p.row + 211 - 1); }},
    {"fuxi_alpha_time", [](const PresetPair& p) { return p.real("ts_w", bucket_of(p)); }},
    {"fuxi_beta_position", [](const PresetPair& p) { return p.real("pos_w", p.col - p.row + 211 - 1); }},
    {"fuxi_beta_time",
     [](const PresetPair& p) {
       const int64_t next = p.time(std::min(p.row + 1, p.n - 1));
       const double age = std::max(static_cast<double>(next - p.time(p.col)), 0.0);
       return p.real("a", 0) * std::pow(age + 1, -p.real("b", 0));
     }},
    {"fuxi_gamma",
     [](const PresetPair& p) {
       const double age = std::abs(static_cast<double>(p.time(p.row) - p.time(p.col)));
       const double gamma = std::exp(-p.real("decay", 0));
       return p.real("a", 0) * std::pow(gamma, std::pow(age, p.real("b", 0)));
     }},
    {"slopes_fixed",
     [](const PresetPair& p) {
       const double slope = 1 / std::exp2(8.0 * static_cast<double>(p.head + 1) / static_cast<double>(p.heads));
       return silu_of(p.x - slope * static_cast<double>(p.row - p.col));
     }},
    {"slopes_learned",
     [](const PresetPair& p) { return silu_of(p.x - p.real("slope", p.head) * static_cast<double>(p.row - p.col)); }},
};

using Masks = std::map<std::string, std::function<bool(const PresetPair&)>>;
const Masks kMasks = {
    {"semi_local", [](const PresetPair& p) { return p.col <= p.row && (p.col <= 31 || p.row - p.col <= 255); }},
    {"sinks", [](const PresetPair& p) { return p.col <= p.row && (p.row - p.col <= 1023 || p.col <= 3); }},
    {"intervals",
     [](const PresetPair& p) {
       return p.col <= p.row && (p.col <= 63 || (p.col >= 512 && p.col <= 1023) || p.row - p.col <= 255);
     }},
    {"mtgr",
     [](const PresetPair& p) {
       if (is_target(p.row, p)) return !is_target(p.col, p) || p.col == p.row;
       return p.col < 64 || p.col <= p.row;
     }},
};

// Reals around 1, times up to some days.
HostTensor drawn(const Operand& operand, int64_t rows, uint64_t seed) {
  HostTensor tensor;
  const auto count = static_cast<int64_t>(elements(operand, {1, rows, rows, rows}));
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = random_bits(seed, 0, static_cast<uint64_t>(i));
    if (is_integer(operand.dtype)) tensor.integers.push_back(1700000000 + static_cast<int64_t>(bits % 300000));
    if (!is_integer(operand.dtype)) tensor.reals.push_back(0.25 + random_unit(bits));
  }
  return tensor;
}

void compare(const std::string& name, const AttentionSpec& spec, int64_t n) {
  const HstuAttentionParams& params = spec.params();
  const auto score = kScores.find(name);
  const auto mask = kMasks.find(name);
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const auto below = [&](uint64_t stream, int64_t count) {
      return static_cast<int64_t>(random_bits(seed, stream, 0) % static_cast<uint64_t>(count));
    };
    PresetPair pair = {2 * random_normal(seed, 1, 0), below(2, n),  below(3, n), n, params.num_targets ? 64 : 0,
                       below(4, params.heads),        params.heads, {}};
    if (mask != kMasks.end()) {
      EXPECT_EQ(hstu_attention_valid(params, pair.row, pair.col, n, pair.targets), mask->second(pair))
          << name << " " << pair.row << " " << pair.col;
      continue;
    }
    pair.col = std::min(pair.row, pair.col);
    std::vector<const HostTensor*> tensors;
    for (const Operand& operand : own_operands(params.operands, params.heads))
      tensors.push_back(&(pair.tensors[operand.name] = drawn(operand, n, seed + tensors.size())));
    const double expected = score->second(pair);
    const double actual =
        ScoreFormula(params, 1, tensors).value(pair.x, {pair.row, pair.col, n, pair.targets, pair.head});
    EXPECT_NEAR(actual, expected, 1e-12 * std::max(1.0, std::abs(expected))) << name;
  }
}

TEST(Presets, AreTheFormulasOfTheirSources) {
  std::set<std::string> seen;
  for (const auto& file : std::filesystem::directory_iterator(source_path("/examples/presets"))) {
    const auto config = load_config(file.path());
    ASSERT_TRUE(config.ok()) << config.status().message();
    for (const Instance& instance : config->instances) {
      SCOPED_TRACE(instance.name);
      ASSERT_TRUE(kScores.contains(instance.name) || kMasks.contains(instance.name)) << "no formula";
      seen.insert(instance.name);
      compare(instance.name, static_cast<const AttentionSpec&>(*instance.spec), (*instance.max_seq_lens.begin()));
    }
  }
  EXPECT_EQ(seen.size(), kScores.size() + kMasks.size());
}

}  // namespace
}  // namespace hstujit
