// Attention with scores in text, on the host and in emulation of the templates, against the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "compiler/nvrtc/nvrtc.h"
#include "compiler/plan/search_space.h"
#include "tests/emulation/attention_case.h"
#include "tests/host/host_call.h"
#include "tests/nvrtc/kept_results.h"
#include "tests/spec/random_score.h"

namespace hstujit {
namespace {

const Json kExact = {{"dtype", "fp32"}, {"precision", "ieee"}};

// Operands that texts read: integers beside tables that are left on both sides, with and without heads, and the rest.
// Some have names that kernels have for something else.
const Json kOperands = {
    {"operands",
     "ts: row(int64), near: table(40, grad), far: table(12, bf16, heads, grad), slope: head(grad), batch: "
     "scalar(grad), params: row(heads, grad), days: table(9, int32), q_map: row(bf16, grad), own: sequence(grad), "
     "number: sequence(bf16, grad), index: sequence(int32), rel: pair(bf16, heads, grad), all: pair(grad)"},
    {"score",
     "tanh(x + near[col - row + 5] + near[int(log2(1.5 + abs(ts[row + 1] - ts[col])) * 2.3)] + "
     "far[(ts[row] - ts[col]) * 1000000007 // 24 % 7 - 1] * slope + q_map[row] - q_map[col]) * params[col] + "
     "batch * 0.01 * days[row % 11] + sin(x) * own + 0.001 * index * number + "
     "rel[row, col] * all[row, col] * tanh(x)"}};

// The functions that need something of their own: what is not finite outside of the sequence, integer parts, NaN.
constexpr const char* kTexts[] = {
    "leaky_relu(x, 0.2) - 0.01 * (row - col)",
    "silu(x) * exp(0.02 * (col - row)) + log(row - col + 1.5) / (n - row)",
    "where(row - col < 20, hardswish(x), clamp(x, -1, 0.5)) * pow(1.0 + abs(row - col), -0.3)",
    "silu(x + 0.1 * int(log2(1.3 + abs(row - col)) * 1.7) + 0.05 * ((row // 7 + col) % 5)) * (head + 1) / heads",
    "sqrt(abs(x) + 0.25) * sin(0.3 * row) - cos(x) * min(x, 0.01 * n, 2) * tanh(0.1 * targets + x)",
};

Json of(const std::string& score, const Json& others = Json::object()) {
  return with(with(base(), {{"num_targets", true}, {"score", score}}), others);
}

Lengths lengths_of(int64_t max) {
  return {.rows = {1, 33, 0, max, 64, 31}, .num_targets = {1, 5, 0, 21, 16, 0}, .max_seq_len = max};
}

void check_host(const Json& json, Direction direction, const Lengths& lengths) {
  SCOPED_TRACE(json.dump());
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2, direction);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  HostCall call(spec, lengths, 7, 16, direction);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.mistakes(), "");
}

TEST(TextScore, OnTheHost) {
  for (const char* text : kTexts) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      check_host(of(text, kExact), direction, lengths_of(71));
      check_host(of(text, {{"dtype", "bf16"}, {"rab_heads", 1}, {"attn_scale", "rows"}}), direction, lengths_of(71));
    }
  }
  Lengths last = lengths_of(71);
  last.other_rows["Lq"] = {1, 20, 3, 33, 64, 40};
  check_host(of(kTexts[1], with(kExact, {{"op", "delta_hstu_attention"}, {"jagged_queries", true}})),
             Direction::kForward, last);
}

// Extremes of constants are merged, as integers of either width.
TEST(TextScore, NestedExtremesOfIntegersOfRows) {
  const Json json =
      of("x + 0.01 * max(ts[row], 7, 3) - 0.01 * min(clamp(ts[col], 2, 900), 500) + 0.01 * max(row, 7, 3)",
         with(kExact, {{"operands", "ts: row(int64)"}}));
  check_host(json, Direction::kForward, lengths_of(71));
}

TEST(TextScore, OperandsOnTheHost) {
  const Json targets = with(with(base(), kOperands), {{"num_targets", true}});
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    check_host(with(targets, kExact), direction, lengths_of(71));
    check_host(with(targets, {{"rab_heads", 1}, {"attn_scale", "rows"}}), direction, lengths_of(71));
    check_host(with(targets, {{"attn_scale", "scalar"}, {"adds_gradients", true}}), direction, lengths_of(71));
  }
}

TEST(TextScore, MasksThatReadOperandsOnTheHost) {
  const Json documents = {{"operands", "doc: row(int32)"}, {"mask", "col <= row and doc[row] % 3 == doc[col] % 3"}};
  const Json times = {{"num_targets", true},
                      {"operands", "ts: row(int64), own: sequence(int32), most: scalar(int64), w: row"},
                      {"score", "silu(x + w[row] * w[col] + 0.001 * own)"},
                      {"mask",
                       "where(col < 20, ts[row] - ts[col] < own + most // 2, abs(row - col) < 30) and not (own "
                       "% 2 == 0 and row >= n - targets)"}};
  for (const Json& mask : {documents, times}) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      check_host(with(with(base(), mask), kExact), direction, lengths_of(71));
      check_host(with(with(base(), mask), {{"rab_heads", 1}, {"attn_scale", "rows"}}), direction, lengths_of(71));
    }
  }
  Lengths last = lengths_of(71);
  last.other_rows["Lq"] = {1, 20, 3, 33, 64, 40};
  check_host(with(with(base(), times), {{"op", "delta_hstu_attention"}, {"jagged_queries", true}}), Direction::kForward,
             last);
}

// Seeds of the texts that are drawn: 8 of them, or as many as HSTUJIT_RANDOM_TEXTS says, "first:count".
std::pair<uint64_t, uint64_t> drawn_seeds() {
  const char* const given = std::getenv("HSTUJIT_RANDOM_TEXTS");
  unsigned long first = 9000, count = 8;
  if (given != nullptr && std::sscanf(given, "%lu:%lu", &first, &count) != 2)
    throw std::invalid_argument(std::string("HSTUJIT_RANDOM_TEXTS is ") + given + "; it must be first:count");
  return {first, first + count};
}

TEST(TextScore, RandomTextsWithOperandsOnTheHost) {
  for (auto [seed, end] = drawn_seeds(); seed < end; ++seed) {
    const std::string text = test::random_score_of_operands(seed).text;
    const Json json = of(text, with(kExact, {{"operands", test::kRandomOperands}}));
    for (const Direction direction : {Direction::kForward, Direction::kBackward})
      check_host(json, direction, lengths_of(71));
  }
}

TEST(TextScore, RandomTextsOnTheHost) {
  for (auto [seed, end] = drawn_seeds(); seed < end; ++seed) {
    const std::string text = test::random_score(seed).text;
    for (const Direction direction : {Direction::kForward, Direction::kBackward})
      check_host(of(text, kExact), direction, lengths_of(71));
  }
}

void emulate(const Json& json, Direction direction, const KernelConfig& config, const Lengths& lengths) {
  SCOPED_TRACE(json.dump() + " " + describe(config));
  Case(json, direction, config, lengths).check();
}

TEST(TextScore, Ampere) {
  for (const char* text : {kTexts[1], kTexts[3]}) {
    emulate(of(text), Direction::kForward, ampere_tile(32, 2, 32, 2), lengths_of(71));
    emulate(of(text), Direction::kBackward, ampere_tile(32, 2, 32, 2), lengths_of(71));
  }
  emulate(of(kTexts[2], with(kExact, {{"rab_heads", 1}, {"attn_scale", "rows"}})), Direction::kBackward,
          ampere_tile(64, 2, 16, 1), lengths_of(71));
  const Json reads = with(with(base(), kOperands), {{"num_targets", true}, {"adds_gradients", true}});
  emulate(reads, Direction::kForward, ampere_tile(32, 2, 32, 2), lengths_of(71));
  emulate(reads, Direction::kBackward, ampere_tile(32, 2, 32, 2), lengths_of(71));
}

TEST(TextScore, Hopper) {
  const Lengths lengths = hopper_lengths(true);
  emulate(of(kTexts[1]), Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "persistent"), lengths);
  emulate(of(kTexts[1]), Direction::kBackward, hopper_tile("sm90_backward_twopass", 2, 64, 2, "grid"), lengths);
  emulate(of(kTexts[4]), Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, "semaphore"), lengths);
  const Json reads = with(with(base(), kOperands), {{"num_targets", true}});
  emulate(reads, Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "persistent"), lengths);
  emulate(reads, Direction::kBackward, hopper_tile("sm90_backward_twopass", 2, 64, 2, "grid"), lengths);
  emulate(reads, Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, "semaphore"), lengths);
}

// Where they spilled, no candidate of the template would be taken.
TEST(TextScore, SumsOfTablesSpillNothing) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const Json reads = {
      {"operands", "ts: row(int64), pos_w: table(2047, grad), ts_w: table(129, grad)"},
      {"score", "silu(x + pos_w[col - row + 1023] + ts_w[int(log(1.0 + abs(ts[row + 1] - ts[col])) / 0.301)])"}};
  const DeviceSpec device = *known_device("sm_90a");
  for (const int64_t width : {64, 128}) {
    SCOPED_TRACE(width);
    const OpSpecPtr spec = make_spec(with(with(base(), reads), {{"attn_dim", width}, {"hidden_dim", width}}));
    const auto kernel =
        emit_kernel(*spec, Direction::kBackward,
                    *heuristic_config(*spec, Direction::kBackward, device, {.max_seq_len = 1024}), device);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    std::string log;
    const auto output =
        compile_once(kept_cubins(), **nvrtc, compile_input(kernel->source, kernel->plan, device.arch), &log);
    ASSERT_TRUE(output.ok()) << output.status().message() << log;
    int checked = 0;
    for (const FollowingKernel& following : kernel->plan.following) {
      if (following.function != "site_gradients") continue;
      const auto resources = resources_from_log(output->log, following.kernel_name);
      ASSERT_TRUE(resources.ok()) << resources.status().message();
      EXPECT_EQ(resources->spill_store_bytes, 0);
      ++checked;
    }
    EXPECT_EQ(checked, 1);
  }
}

TEST(TextScore, KernelsCompile) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const Json wide = {{"attn_dim", 64}, {"hidden_dim", 64}};
  const Json reading = {{"operands", "doc: row(int32), own: sequence(int64)"},
                        {"mask", "col <= row and (doc[row] // 3 == doc[col] // 3 or row - col < own)"}};
  for (const Json& json : {of(kTexts[1], wide), of(kTexts[3], wide), with(with(base(), kOperands), wide),
                           with(with(base(), reading), wide)}) {
    const OpSpecPtr spec = make_spec(json);
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const DeviceSpec device = *known_device(arch);
      for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
        SCOPED_TRACE(fmt::format("{} {}", arch, json.dump()));
        const auto config = heuristic_config(*spec, direction, device, {.max_seq_len = 1024});
        ASSERT_TRUE(config.ok()) << config.status().message();
        const auto kernel = emit_kernel(*spec, direction, *config, device);
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        std::string log;
        const auto output =
            compile_once(kept_cubins(), **nvrtc, compile_input(kernel->source, kernel->plan, device.arch), &log);
        EXPECT_TRUE(output.ok()) << (output.ok() ? "" : output.status().message()) << log;
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
