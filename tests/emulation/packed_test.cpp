// The forward kernel for Hopper whose tiles have rows of consecutive sequences, in emulation.
#include <fmt/format.h>

#include <cmath>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

KernelConfig packed_tile(int64_t block_n, int64_t stages, const char* schedule = "persistent",
                         int64_t blocks_per_sm = 2) {
  KernelConfig config = hopper_tile("sm90_forward", 1, block_n, stages, schedule, blocks_per_sm);
  config.attention().pack_sequences = true;
  return config;
}

Lengths lengths_of(std::vector<int64_t> rows, const Json& json) {
  Lengths lengths{.rows = std::move(rows), .num_targets = {}, .max_seq_len = 400};
  if (!json.value("num_targets", false)) return lengths;
  for (size_t i = 0; i < lengths.rows.size(); ++i) {
    const int64_t rows_of = lengths.rows[i];
    lengths.num_targets.push_back(i % 4 == 0 ? rows_of : i % 4 == 3 ? 0 : std::min<int64_t>(rows_of, 1 + i % 7));
  }
  return lengths;
}

std::vector<int64_t> repeated(std::vector<int64_t> pattern, size_t count) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < count; ++i) rows.push_back(pattern[i % pattern.size()]);
  return rows;
}

// Sequences around a tile and of a few rows, all of one row, one that is far longer than the others, alone and at
// either end, no rows at all, and many sequences without rows between two that have some.
std::vector<std::vector<int64_t>> adversarial() {
  std::vector<int64_t> sparse(200, 0);
  sparse[0] = 3, sparse[70] = 61, sparse[71] = 1, sparse[199] = 65;
  std::vector<int64_t> lonely = repeated({7, 1, 0, 30, 2}, 40);
  lonely[20] = 390;
  return {{1, 65, 0, 200, 64, 127, 129},
          repeated({1}, 130),
          repeated({30, 3, 0, 17, 60, 5}, 24),
          lonely,
          {390, 1, 2, 3},
          {3, 2, 1, 390},
          {64, 64, 64},
          {63, 1, 64, 65, 63},
          {1},
          {0, 0, 5, 0},
          sparse};
}

void check(const Json& changes, const KernelConfig& config, const std::vector<int64_t>& rows) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {} rows {}", json.dump(), describe(config), fmt::join(rows, " ")));
  Case(json, Direction::kForward, config, lengths_of(rows, json)).check();
}

TEST(EmulatedPacked, EveryShape) {
  const std::vector<int64_t> rows = adversarial()[0];
  check({{"dtype", "bf16"}, {"attn_dim", 64}, {"hidden_dim", 64}}, packed_tile(64, 2), rows);
  check({{"dtype", "fp16"}, {"attn_dim", 40}, {"hidden_dim", 128}}, packed_tile(64, 3), rows);
  check({{"dtype", "bf16"}, {"attn_dim", 128}, {"hidden_dim", 64}}, packed_tile(80, 2, "grid"), rows);
  check({{"dtype", "fp16"}, {"attn_dim", 64}, {"hidden_dim", 24}}, packed_tile(128, 2), rows);
}

TEST(EmulatedPacked, EveryLength) {
  for (const std::vector<int64_t>& rows : adversarial()) {
    check(Json::object(), packed_tile(64, 2), rows);
    check({{"num_targets", true}, {"heads", 1}}, packed_tile(32, 2, "grid"), rows);
  }
}

TEST(EmulatedPacked, EveryMask) {
  const std::vector<std::vector<int64_t>> all = adversarial();
  for (const Json& mask : mask_changes()) {
    for (const size_t kind : {2, 3}) check(with(mask, {{"heads", 1}}), packed_tile(64, 2), all[kind]);
  }
}

// As compute-sanitizer's racecheck has it.
TEST(EmulatedPacked, EveryLaneArrives) {
  KernelConfig config = packed_tile(64, 2);
  config.sanitizer.lanes_arrive = true;
  check({{"num_targets", true}}, config, adversarial()[3]);
}

TEST(EmulatedPacked, FactorsOfRows) {
  check({{"attn_scale", "rows"}}, packed_tile(64, 2), adversarial()[2]);
  check({{"attn_scale", "scalar"}}, packed_tile(64, 2), adversarial()[2]);
}

TEST(EmulatedPacked, NoRowsAtAll) {
  const Case kernel(base(), Direction::kForward, packed_tile(64, 2),
                    {.rows = {0, 0, 0}, .num_targets = {}, .max_seq_len = 64});
  HostCall call = kernel.call(/*row_padding=*/16);
  call.add_rows(70);
  kernel.launch(call, 1);
  const std::vector<std::byte>& out = call.bytes("out");
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], HostCall::kUntouched) << i;
}

TEST(EmulatedPacked, SenselessIndicesStayInBounds) {
  for (const char* schedule : {"grid", "persistent"}) {
    check_that_senseless_indices_stay_in_bounds(Direction::kForward, packed_tile(64, 2, schedule));
  }
}

// A number that is not finite in one sequence leaves the bits of all others, whose rows share its tiles. It reaches
// those of its own rows that see it.
TEST(EmulatedPacked, NumbersStayInTheirSequence) {
  constexpr int64_t kWidth = 2 * 32, kBegin = 31, kEnd = 71, kBad = 40;  // the third sequence; one row of it
  for (const char* dtype : {"bf16", "fp16"}) {
    const Case kernel(with(base(), {{"dtype", dtype}}), Direction::kForward, packed_tile(64, 2),
                      {.rows = {1, 30, 40, 0, 70, 16, 3}, .num_targets = {}, .max_seq_len = 70});
    const HostCall clean = [&] {
      HostCall call = kernel.call();
      kernel.launch(call, 1);
      return call;
    }();
    const HostTensor expected = clean.read("out");
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      for (const size_t tensor : {0, 1, 2}) {  // q, k, v
        HostCall dirty = kernel.call();
        std::vector<double>& reals = dirty.inputs()[tensor].tensor.reals;
        std::fill(reals.begin() + kBad * kWidth, reals.begin() + (kBad + 1) * kWidth, bad);
        kernel.launch(dirty, 1);
        const HostTensor out = dirty.read("out");
        for (size_t i = 0; i < out.reals.size(); ++i) {
          const auto row = static_cast<int64_t>(i) / kWidth;
          const bool sees = tensor == 0 ? row == kBad : row >= kBad && row < kEnd;
          if (!sees) {
            ASSERT_EQ(expected.reals[i], out.reals[i]) << dtype << " " << bad << " " << tensor << " " << i;
          } else if (tensor == 2 || std::isnan(bad)) {
            ASSERT_FALSE(std::isfinite(out.reals[i])) << dtype << " " << bad << " " << tensor << " " << i;
          }
        }
      }
    }
    static_assert(kBegin < kBad);
  }
}

KernelConfig packed_backward(int64_t block_n, int64_t stages, int64_t blocks_per_sm = 2) {
  KernelConfig config = hopper_tile("sm90_backward_twopass", 1, block_n, stages, "persistent", blocks_per_sm);
  config.attention().pack_sequences = true;
  return config;
}

void check_backward(const Json& changes, const KernelConfig& config, const std::vector<int64_t>& rows) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {} rows {}", json.dump(), describe(config), fmt::join(rows, " ")));
  Case(json, Direction::kBackward, config, lengths_of(rows, json)).check();
}

// With a warp that zeroes what lies behind what moving tiles have, and without; with sums that are roles of their own.
TEST(EmulatedPackedBackward, EveryShape) {
  const std::vector<int64_t> rows = adversarial()[0];
  check_backward({{"dtype", "bf16"}}, packed_backward(64, 2), rows);
  check_backward({{"dtype", "fp16"}, {"attn_dim", 48}, {"hidden_dim", 64}}, packed_backward(32, 4), rows);
  check_backward({{"dtype", "bf16"}}, packed_backward(32, 2, 3), rows);
  check_backward({{"attn_dim", 192}, {"hidden_dim", 96}, {"heads", 1}}, packed_backward(32, 2, 1), rows);
}

TEST(EmulatedPackedBackward, EveryLength) {
  for (const std::vector<int64_t>& rows : adversarial()) {
    check_backward({{"num_targets", true}, {"heads", 1}}, packed_backward(64, 2), rows);
  }
}

TEST(EmulatedPackedBackward, EveryMask) {
  const std::vector<std::vector<int64_t>> all = adversarial();
  for (const Json& mask : mask_changes()) {
    for (const size_t kind : {2, 3}) check_backward(with(mask, {{"heads", 1}}), packed_backward(64, 2), all[kind]);
  }
}

TEST(EmulatedPackedBackward, FactorsOfRows) {
  check_backward({{"attn_scale", "rows"}}, packed_backward(64, 2), adversarial()[2]);
  check_backward({{"attn_scale", "scalar"}}, packed_backward(64, 2), adversarial()[2]);
}

TEST(EmulatedPackedBackward, EveryLaneArrives) {
  KernelConfig config = packed_backward(64, 2);
  config.sanitizer.lanes_arrive = true;
  check_backward({{"num_targets", true}}, config, adversarial()[3]);
}

TEST(EmulatedPackedBackward, SenselessIndicesStayInBounds) {
  check_that_senseless_indices_stay_in_bounds(Direction::kBackward, packed_backward(64, 2));
}

TEST(EmulatedPackedBackward, NumbersStayInTheirSequence) {
  check_that_numbers_stay_in_their_sequence(packed_backward(64, 2));
  check_that_numbers_stay_in_their_sequence(packed_backward(32, 2, 3));
}

// One row of dout is NaN: so are the gradients of those columns that it sees, and of its own row.
TEST(EmulatedPackedBackward, OneRowReachesWhatItSees) {
  constexpr int64_t kWidth = 2 * 32, kBegin = 31, kBad = 40;  // the third sequence, and one of its rows
  const Case kernel(base(), Direction::kBackward, packed_backward(64, 2),
                    {.rows = {1, 30, 40, 0, 70, 16, 3}, .num_targets = {}, .max_seq_len = 70});
  HostCall clean = kernel.call(), dirty = kernel.call();
  std::vector<double>& dout = dirty.inputs()[3].tensor.reals;
  std::fill(dout.begin() + kBad * kWidth, dout.begin() + (kBad + 1) * kWidth, std::numeric_limits<double>::quiet_NaN());
  kernel.launch(clean, 1);
  kernel.launch(dirty, 1);
  for (const std::string name : {"dq", "dk", "dv"}) {
    const HostTensor a = clean.read(name), b = dirty.read(name);
    for (size_t i = 0; i < a.reals.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / kWidth;
      if (name == "dq" ? row == kBad : row >= kBegin && row <= kBad) {
        ASSERT_TRUE(std::isnan(b.reals[i])) << name << " " << i;
      } else {
        ASSERT_EQ(a.reals[i], b.reals[i]) << name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
