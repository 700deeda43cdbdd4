// Kernels whose mask reads operands, in emulation against the float64 reference: packed documents, times, a number of
// each sequence and one of all, forward and backward, in every template and schedule.
#include <fmt/format.h>

#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

const Json kDocuments = {{"operands", "doc: row(int32)"}, {"mask", "col <= row and doc[row] % 3 == doc[col] % 3"}};
const Json kTimes = {{"num_targets", true},
                     {"operands", "ts: row(int64), own: sequence(int32), most: scalar(int64)"},
                     {"mask",
                      "row - col < 70 and (ts[row] - ts[col] < own + most // 2 or row >= n - targets and col == row) "
                      "and not (own % 2 == 0 and col < 20)"}};
const Json kBoth = {{"operands", "ts: row(int64), w: row(grad), own: sequence(int32)"},
                    {"score", "silu(x + w[row] - w[col] + 0.001 * (ts[row] - own))"},
                    {"mask", "where(col < 40, ts[col] >= ts[row], abs(row - col) < 30)"}};
const Json kLastRows = {{"op", "delta_hstu_attention"}, {"jagged_queries", true}};

void check(const Json& changes, Direction direction, const KernelConfig& config) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {} {}", json.dump(), to_string(direction), describe(config)));
  Lengths lengths{.rows = {1, 65, 0, 140, 64}, .num_targets = {}, .max_seq_len = 140};
  if (json.value("num_targets", false)) lengths.num_targets = {1, 5, 0, 20, 64};
  if (json["op"] == "delta_hstu_attention") lengths.other_rows["Lq"] = {1, 20, 3, 70, 64};
  Case(json, direction, config, lengths).check();
}

TEST(EmulatedMaskOperands, Ampere) {
  for (const Json& mask : {kDocuments, kTimes, kBoth}) {
    check(mask, Direction::kForward, ampere_tile(32, 2, 32, 2));
    check(mask, Direction::kBackward, ampere_tile(32, 2, 16, 2));
  }
  check(with(kTimes, {{"rab_heads", 1}, {"attn_scale", "rows"}}), Direction::kBackward,
        per_sequence(ampere_tile(32, 2, 32, 2)));
  check(with(kTimes, kLastRows), Direction::kForward, ampere_tile(32, 2, 32, 2));
}

TEST(EmulatedMaskOperands, Hopper) {
  check(kDocuments, Direction::kForward, hopper_tile("sm90_forward", 2, 64, 2, "persistent"));
  check(kTimes, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "grid"));
  check(kBoth, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "persistent"));
  check(with(kTimes, kLastRows), Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "grid"));
  check(kTimes, Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2, "persistent"));
  check(kBoth, Direction::kBackward, hopper_tile("sm90_backward_twopass", 1, 64, 2));
  const char* const schedules[] = {"persistent", "semaphore", "per_sequence"};
  const Json masks[] = {kDocuments, kTimes, kBoth};
  for (size_t i = 0; i < 3; ++i)
    check(masks[i], Direction::kBackward, hopper_tile("sm90_backward_fused", 2, 64, 2, schedules[i]));
}

}  // namespace
}  // namespace hstujit
