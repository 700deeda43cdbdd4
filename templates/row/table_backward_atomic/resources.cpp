#include "templates/row/table_backward_atomic/resources.h"

#include <algorithm>
#include <bit>

#include "compiler/support/integers.h"
#include "templates/common/sm90/machine.h"
#include "templates/row/operands.h"

namespace hstujit::row_table_backward_atomic {

namespace {

constexpr int64_t kBaseRegisters = 54;
constexpr int64_t kMaxSums = 64;   // elements of a thread, of the first table
constexpr int64_t kMinVector = 4;  // values of an addition in memory
constexpr int64_t kMaxSlots = 8;
constexpr int64_t kMaxRowsAhead = 4;
constexpr int64_t kMaxRecentRows = 32, kMinRecentRows = 4;
constexpr int64_t kMaxStages = 8, kFewStages = 4;
constexpr int64_t kStageBytes = 40;  // what else there is of a stage
constexpr int64_t kNoRecentBytes = 20;

int64_t floor_of_power(int64_t value) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(value))); }

}  // namespace

Resources::Resources(const RowSpec& spec, const RowConfig& config) {
  const RowInterface& interface = spec.interface(Direction::kBackward);
  const auto element_bytes = static_cast<int64_t>(size_of(spec.dtype()));
  const int64_t inputs = row::count_of(interface.inputs, RowOperandKind::kRow);
  const int64_t tables = row::count_of(interface.outputs, RowOperandKind::kTableSum);
  consumers = kWarp * config.warps;
  threads = consumers + kWarp;
  // At most 16 bytes; fewer where threads would have nothing to do.
  vector = std::clamp(floor_of_power(interface.width / config.threads_per_row), kMinVector, kBulkBytes / element_bytes);
  elements = ceil_div(interface.width / vector, config.threads_per_row) * vector;
  slots = std::clamp(floor_of_power(kMaxSums / std::max<int64_t>(1, elements)), int64_t{1}, kMaxSlots);
  rows_ahead = std::min(kMaxRowsAhead, slots);
  const int64_t groups = consumers / config.threads_per_row, tile_rows = slots * groups;
  stage_bytes = tile_rows * (inputs * interface.width * element_bytes + 4 * tables) + kStageBytes;
  // As many recent rows as leave enough stages.
  int64_t recent_bytes = 0;
  for (recent_rows = kMaxRecentRows;; recent_rows /= 2) {
    recent_bytes = std::max(kNoRecentBytes, (tables - 1) * recent_rows * (groups * interface.width + consumers) * 4);
    stages = (sm90::kSharedLimit / config.blocks_per_sm - kReservedSharedMemory - recent_bytes) / stage_bytes;
    if (stages >= kFewStages || recent_rows == kMinRecentRows) break;
  }
  stages = std::min(stages, kMaxStages);
  tiles_at_once = std::clamp(kWarp / tile_rows, int64_t{1}, std::max<int64_t>(1, stages / 2));
  shared_bytes = round_up(std::max<int64_t>(0, stages) * stage_bytes + recent_bytes, int64_t{128});
  // The first table's sums, the last row of each other one, and what a row adds.
  registers = kBaseRegisters + rows_ahead * inputs * elements * element_bytes / 4 + (slots + tables + 1) * elements;
}

}  // namespace hstujit::row_table_backward_atomic
