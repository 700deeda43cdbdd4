// Tables, elements of heads and scalars that a score reads, declared here and nowhere else: forward and backward, on
// the host and in emulation of every template, against float64, and as NVRTC compiles it.
//
//   y = tanh(alpha x (1 + gain / 8) + near[row - col] / 2 + near[col - row + 5] wide[row % 9] / 4
//            + own[(3 row + col) % 23 - 4, head / group] / 4 + slope[head] (row - col) / 64
//            + wide[(days[row + 1] - days[col]) / 8] / 8 + wide[(days[row + 1] - days[col]) 2^33] / 16)
//
// `near` has 40 entries, `wide` 64 and `own` 16 for every two heads: all are read beyond both ends. The last line,
// which reads rows, is missing where a kernel has no rows of k. All but `days` have gradients.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "compiler/host/kernel.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/plan/search_space.h"
#include "compiler/spec/operators/hstu_attention/operands/sums.h"
#include "tests/nvrtc/kept_results.h"
#include "tests/score/operand_formula.h"

namespace hstujit {
namespace {

constexpr int64_t kNear = 40, kWide = 64, kOwn = 16;

int64_t heads_of_own(int64_t heads) { return std::max<int64_t>(heads / 2, 1); }

Operand declare(const char* name, const OperandKind& kind, DataType dtype, int64_t heads, int64_t entries) {
  return {.name = name,
          .kind = &kind,
          .use = OperandUse::kScore,
          .dtype = dtype,
          .heads = heads,
          .entries = entries,
          .gradient = !is_integer(dtype)};
}

WithOperandsPtr with_tables(const Json& changes, bool days = true) {
  const OpSpecPtr parsed = make_spec(with(base(), changes));
  const auto& attention = static_cast<const AttentionSpec&>(*parsed);
  const HstuAttentionParams& params = attention.params();
  std::vector<Operand> declared = {declare("near", table_kind(), DataType::kFp32, 0, kNear),
                                   declare("slope", head_kind(), params.dtype, params.heads, 0),
                                   declare("wide", table_kind(), params.dtype, 0, kWide),
                                   declare("own", table_kind(), params.dtype, heads_of_own(params.heads), kOwn),
                                   declare("gain", scalar_kind(), DataType::kFp32, 0, 0)};
  if (days) declared.push_back(declare("days", row_kind(), DataType::kInt64, 0, 0));
  if (attention.query_rows() != QueryRows::kAll) {
    for (Operand& operand : declared) operand.gradient = false;
  }
  return std::make_shared<WithOperands>(params, attention.query_rows(), declared);
}

mlir::Value build_score_of_tables(Ops& ops, const ScoreArguments& given) {
  const auto read = [&](const char* name, mlir::Value position, double times) {
    return ops.mulf(given.read(ops, name, position), ops.real(times));
  };
  const mlir::Value row = given.row, col = given.col, age = ops.sub(row, col);
  const mlir::Value x = ops.mulf(given.x, given.scalars.at("alpha"));
  mlir::Value s = ops.addf(x, ops.mulf(x, read("gain", ops.integer(0), 0.125)));
  s = ops.addf(s, read("near", age, 0.5));
  const mlir::Value of_row = mlir::arith::RemSIOp::create(ops.builder(), ops.location(), row, ops.integer(9));
  s = ops.addf(s, ops.mulf(read("near", ops.add(ops.neg(age), ops.integer(5)), 0.25), read("wide", of_row, 1)));
  const mlir::Value mixed = mlir::arith::RemSIOp::create(ops.builder(), ops.location(),
                                                         ops.add(ops.mul(row, ops.integer(3)), col), ops.integer(23));
  s = ops.addf(s, read("own", ops.sub(mixed, ops.integer(4)), 0.25));
  s = ops.addf(s, ops.mulf(read("slope", given.head, 1.0 / 64), ops.int_to_real(age)));
  if (given.operands.contains("days")) {
    const auto constant = [&](int64_t value) {
      return mlir::arith::ConstantOp::create(ops.builder(), ops.location(), ops.builder().getI64IntegerAttr(value));
    };
    const mlir::Value next = given.read(ops, "days", ops.add(row, ops.integer(1)));
    const mlir::Value days = ops.sub(next, given.read(ops, "days", col));
    s = ops.addf(s, read("wide", ops.div(days, constant(8)), 0.125));
    s = ops.addf(s, read("wide", ops.mul(days, constant(int64_t{1} << 33)), 0.0625));
  }
  return ops.tanh(s);
}

class Formula final : public OperandFormula {
 public:
  using OperandFormula::OperandFormula;

 private:
  static int64_t nearest(int64_t entry, int64_t entries) { return std::clamp<int64_t>(entry, 0, entries - 1); }
  int64_t place_of_own(const Pair& pair) const {
    const int64_t own_heads = heads_of_own(heads()), own = pair.head / (heads() / own_heads);
    return nearest((3 * pair.i + pair.j) % 23 - 4, kOwn) * own_heads + own;
  }
  int64_t days(const Pair& pair) const {
    return static_cast<int64_t>(read_row("days", pair, pair.i + 1) - read_row("days", pair, pair.j));
  }
  // Entries that the pair reads, and the derivative of s with respect to each.
  struct Read {
    const char* name;
    int64_t place;
    double slope;
    bool is_term = true;  // of s: of the two factors of a product, one
  };
  std::vector<Read> reads(const Pair& pair) const {
    const int64_t age = pair.i - pair.j, other = nearest(5 - age, kNear), of_row = pair.i % 9;
    std::vector<Read> all = {{"near", nearest(age, kNear), 0.5},
                             {"near", other, read("wide", of_row) / 4},
                             {"wide", of_row, read("near", other) / 4, false},
                             {"own", place_of_own(pair), 0.25},
                             {"slope", pair.head, static_cast<double>(age) / 64},
                             {"gain", 0, alpha() * pair.x / 8}};
    if (has("days")) {
      all.push_back({"wide", nearest(days(pair) / 8, kWide), 0.125});
      all.push_back({"wide", days(pair) > 0 ? kWide - 1 : 0, 0.0625});
    }
    return all;
  }

  double slope_of_product(const Pair&) const override { return alpha() * (1 + read("gain", 0) / 8); }
  double argument(const Pair& pair) const override {
    double s = alpha() * pair.x;
    for (const Read& each : reads(pair)) s += each.is_term ? each.slope * read(each.name, each.place) : 0;
    return s;
  }
  void add_gradients(const Pair& pair, double ds, Tensors& y) const override {
    for (const Read& each : reads(pair)) add(y[std::string("d") + each.name], each.place, ds * each.slope);
  }
};

const Json kTargets = {{"num_targets", true}};
const Json kExact = {{"num_targets", true}, {"dtype", "fp32"}, {"precision", "ieee"}};
const Json kHalf = {{"num_targets", true}, {"dtype", "fp16"}, {"heads", 4}};
const Json kOthers = {{"num_targets", true}, {"rab_heads", 1}, {"attn_scale", "rows"}, {"heads", 4}};
const Json kAdding = {{"num_targets", true}, {"rab_heads", 2}, {"attn_scale", "scalar"}, {"adds_gradients", true}};
const Json kLastRows = {{"op", "delta_hstu_attention"}, {"jagged_queries", true}, {"num_targets", true}};

const std::vector<std::string>& gradients() {
  static const std::vector<std::string> names = {"dnear", "dslope", "dwide", "down", "dgain"};
  return names;
}

void check_host(const Json& changes, Direction direction, const Lengths& lengths, bool days = true) {
  const auto spec = with_tables(changes, days);
  SCOPED_TRACE(changes.dump());
  const auto context = make_context();
  prepare_context(*context);
  HostCall one(spec, lengths, 7, 0, direction), several(spec, lengths, 7, 0, direction);
  for (const auto& [threads, call] : {std::pair{1, &one}, {3, &several}}) {
    const auto kernel = JitKernel::create(*module_of(*context, *spec, build_score_of_tables), spec, direction, threads,
                                          kept_objects(*spec, direction));
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    call->pack_inputs();
    const Status status = kernel->launch(call->values().data(), call->values().size());
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(mistakes_of<Formula>(one, *spec, direction), "");
  if (direction == Direction::kForward) return;
  for (const std::string& name : gradients()) EXPECT_EQ(one.bytes(name), several.bytes(name)) << name;
}

TEST(TableOperand, OnTheHost) {
  for (const Json& changes :
       {kExact, with(kExact, kOthers), with(kExact, kAdding), with(kTargets, {{"causal", false}}), kHalf})
    for (const Direction direction : {Direction::kForward, Direction::kBackward})
      check_host(changes, direction, lengths_of(300));
  check_host(with(kLastRows, kExact), Direction::kForward, last_rows_of(300));
  check_host(kLastRows, Direction::kForward, last_rows_of(300), false);
}

// The gradients of operands are what differences of the loss in float64 say.
TEST(TableOperand, GradientsAreDifferencesOfTheLoss) {
  const auto spec = with_tables(with(kExact, kOthers));
  const Lengths lengths = {.rows = {7, 31}, .num_targets = {2, 3}, .max_seq_len = 31};
  HostCall call(spec, lengths, 7, 0, Direction::kBackward);
  Formula formula(*spec, Direction::kBackward, call.inputs());
  const Tensors y = formula.outputs();
  for (const std::string& name : gradients()) {
    std::vector<double>& elements = formula.tensor(name.substr(1));
    for (size_t i = 0; i < elements.size(); ++i) {
      constexpr double kStep = 1e-5;
      const double before = elements[i];
      elements[i] = before + kStep;
      const double above = formula.loss();
      elements[i] = before - kStep;
      const double difference = (above - formula.loss()) / (2 * kStep);
      elements[i] = before;
      const double gradient = i < y.at(name).size() ? y.at(name)[i] : 0;
      EXPECT_NEAR(gradient, difference, 1e-6 * std::max(1.0, std::abs(difference))) << name << i;
    }
  }
}

EmittedKernel emit_for(const WithOperandsPtr& spec, Direction direction, KernelConfig config) {
  if (config.skeleton.empty())
    config.skeleton = direction == Direction::kForward ? "attention/sm80_forward" : "attention/sm80_backward";
  config.attention().activation = "accurate";
  auto emitted = emit_with(build_score_of_tables, *spec, direction, config, *known_device("sm_90a"));
  // As in Case.
  while (!emitted.ok() && config.attention().blocks_per_sm < AttentionConfig::kMaxBlocksPerSm) {
    ++config.attention().blocks_per_sm;
    emitted = emit_with(build_score_of_tables, *spec, direction, config, *known_device("sm_90a"));
  }
  if (!emitted.ok()) throw std::runtime_error(emitted.status().message());
  return std::move(*emitted);
}

// Twice, with threads and blocks in other orders: gradients of operands have the same bits.
void check(const Json& changes, Direction direction, const KernelConfig& config, const Lengths& lengths,
           bool days = true) {
  const auto spec = with_tables(changes, days);
  SCOPED_TRACE(changes.dump() + " " + describe(config));
  const EmulatedKernel kernel(emit_for(spec, direction, config));
  HostCall call(spec, lengths, 7, 16, direction), again(spec, lengths, 7, 16, direction);
  call.pack_inputs();
  kernel.launch(call.values(), 1, 1);
  EXPECT_EQ(mistakes_of<Formula>(call, *spec, direction), "");
  if (direction == Direction::kForward) return;
  again.pack_inputs();
  kernel.launch(again.values(), 2, 1);
  for (const std::string& name : gradients()) EXPECT_EQ(call.bytes(name), again.bytes(name)) << name;
}

TEST(TableOperand, Ampere) {
  for (const Json& type : {kExact, kTargets}) {
    check(type, Direction::kForward, ampere_tile(32, 2, 32, 2), lengths_of(71));
    check(type, Direction::kBackward, ampere_tile(32, 2, 32, 2), lengths_of(71));
  }
  check(kOthers, Direction::kBackward, ampere_tile(64, 2, 16, 1), lengths_of(71));
  check(kAdding, Direction::kBackward, ampere_tile(64, 2, 16, 1), lengths_of(71));
  check(with(kHalf, {{"causal", false}}), Direction::kBackward, ampere_tile(64, 2, 16, 1), lengths_of(150));
  check(kLastRows, Direction::kForward, ampere_tile(32, 2, 32, 2), last_rows_of(71));
}

TEST(TableOperand, Hopper) {
  check(kTargets, Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "persistent"), lengths_of(200));
  check(kOthers, Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "grid"), lengths_of(200));
  check(kOthers, Direction::kBackward, hopper_tile("sm90_backward_twopass", 2, 64, 2, "grid"), lengths_of(200));
  check(kTargets, Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, "semaphore"), lengths_of(200));
}

// Kernels that do not know where a sequence's rows of k are.
TEST(TableOperand, HopperWithoutRowsOfK) {
  check(kLastRows, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "grid"), last_rows_of(200), false);
  KernelConfig packed = hopper_tile("sm90_forward", 1, 64, 2, "persistent");
  packed.attention().pack_sequences = true;
  check(kTargets, Direction::kForward, packed, lengths_of(71), false);
  KernelConfig packed_backward = hopper_tile("sm90_backward_twopass", 1, 64, 2, "persistent");
  packed_backward.attention().pack_sequences = true;
  check(kTargets, Direction::kBackward, packed_backward, lengths_of(71), false);
}

// A NaN reaches the elements that its pairs read, and no other, in one order or another.
TEST(TableOperand, WhatIsNoNumberStaysWithItsEntries) {
  const auto spec = with_tables(kTargets, false);
  const EmulatedKernel kernel(emit_for(spec, Direction::kBackward, ampere_tile(64, 2, 16, 1)));
  HostCall clean(spec, lengths_of(71), 7, 0, Direction::kBackward), dirty = clean;
  const Signature signature = spec->signature(Direction::kBackward);
  // Row 2 of the second sequence, which begins at row 1: columns 0 to 2, of which `near` has the ages 2, 1, 0 and, as
  // 5 - age, the entries 3, 4, 5.
  std::vector<double>& dout = dirty.inputs()[static_cast<size_t>(find_argument(signature, "dout"))].tensor.reals;
  std::fill_n(dout.begin() + 3 * 64, 64, std::numeric_limits<double>::infinity());
  for (HostCall* call : {&clean, &dirty}) {
    call->pack_inputs();
    kernel.launch(call->values(), 1, 1);
  }
  const HostTensor before = clean.read("dnear"), after = dirty.read("dnear");
  for (size_t entry = 0; entry < before.reals.size(); ++entry) {
    EXPECT_EQ(std::isfinite(after.reals[entry]), entry > 5) << entry;
    if (entry > 5) {
      EXPECT_NEAR(after.reals[entry], before.reals[entry], 1e-2) << entry;
    }
  }
}

TEST(TableOperand, KernelsCompile) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const auto spec = with_tables(with(kOthers, {{"attn_dim", 64}, {"hidden_dim", 64}}));
  std::set<std::string> compiled;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const DeviceSpec device = *known_device(arch);
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      for (const Candidate& candidate : search_space(*spec, direction, device, {.max_seq_len = 1024}).candidates) {
        if (!compiled.insert(candidate.config.skeleton).second) continue;
        SCOPED_TRACE(fmt::format("{} {}", arch, describe(candidate.config)));
        const auto kernel = emit_with(build_score_of_tables, *spec, direction, candidate.config, device);
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        std::string log;
        const auto output =
            compile_once(kept_cubins(), **nvrtc, compile_input(kernel->source, kernel->plan, device.arch), &log);
        ASSERT_TRUE(output.ok()) << output.status().message() << log;
        // Seven sites may spill a few bytes; a position and a time do not (TextScore.SumsOfTablesSpillNothing).
        for (const FollowingKernel& following : kernel->plan.following) {
          if (following.function != "site_gradients") continue;
          const auto resources = resources_from_log(output->log, following.kernel_name);
          ASSERT_TRUE(resources.ok()) << resources.status().message();
          EXPECT_LE(resources->spill_store_bytes, 80);
        }
      }
    }
  }
  EXPECT_GE(compiled.size(), 5U);
}

// A table's gradient has no more elements than a multiprocessor has room for; reading has no such limit.
TEST(TableOperand, SumsThatDoNotFitAreRefused) {
  const OpSpecPtr parsed = make_spec(with(base(), kTargets));
  const HstuAttentionParams& params = static_cast<const AttentionSpec&>(*parsed).params();
  const auto reasons = [&](int64_t entries, const char* device) {
    const WithOperands spec(params, QueryRows::kAll, {declare("near", table_kind(), DataType::kFp32, 0, entries)});
    EXPECT_EQ(OperandSums(spec.operands()).shared_bytes() <= kMostSumBytes, entries < 23000);
    KernelConfig config = ampere_tile(64, 2, 16, 1);
    config.skeleton = "attention/sm80_backward";
    std::string text;
    for (const Rejection& reason : (*find_skeleton(config.skeleton))->reject(spec, config, *known_device(device)))
      text += reason.detail;
    return text;
  };
  EXPECT_EQ(reasons(22000, "sm_90a"), "");
  EXPECT_EQ(reasons(14000, "sm_80"), "");
  EXPECT_EQ(reasons(6000, "sm_89"), "");
  EXPECT_NE(reasons(23000, "sm_90a").find("have 23000 elements, and the longest table 23000 entries; their sums need"),
            std::string::npos);
  EXPECT_NE(reasons(7000, "sm_89"), "");
}

}  // namespace
}  // namespace hstujit
