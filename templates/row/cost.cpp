#include "templates/row/cost.h"

#include <algorithm>
#include <bit>

#include "templates/row/resources.h"

namespace hstujit::row {

namespace {

constexpr double kRows = 131072;  // a launch says no number of rows; with many, bytes decide
constexpr double kClockKhz = 1.7e6;
constexpr double kBytes = 19;  // of device memory, per multiprocessor and clock
// Of a multiprocessor, that keep the memory busy where half of what it does are reads.
constexpr double kBytesInFlight = 36864;
constexpr double kCopyWins = 1.04;   // over the bytes alone, at best
constexpr double kLoadCycles = 900;  // from a load to its value, where all multiprocessors load
constexpr double kShuffleCycles = 28;
constexpr double kBarrierCycles = 90;
constexpr double kElementCycles = 0.75;       // of a warp's chain of dependent additions, per element and round
constexpr double kLanes = 128;                // of a multiprocessor, each with an instruction a clock
constexpr double kSchedulers = 4;             // of a multiprocessor
constexpr double kRowInstructions = 70;       // of a thread for each row: addresses, statistics, shuffles, the loop
constexpr double kGridRowInstructions = 110;  // the same where each row has a CTA of its own, which begins and ends
constexpr double kGridFused = 0.75;           // instructions of an operation there: some are one with others
constexpr double kAccess = 2;                 // instructions of an access besides
constexpr double kDraw = 8;                   // instructions of a random number
constexpr double kGridDraw = 20;              // the same where the keys are not kept from row to row
constexpr double kStartCycles = 4000;         // of a launch
constexpr double kFollowCycles = 5000;        // of the kernel that adds up the partial sums of column sums
constexpr double kL2Bytes = 40;
constexpr double kSector = 32;        // bytes of device memory that are read or written together
constexpr double kCacheLine = 128;    // bytes
constexpr double kLateWarps = 0.015;  // of the time, for each warp beyond four that a CTA of a grid waits for to end

// Accesses of a warp to pieces of rows that are shorter than a cache line, of which others access the rest.
double divergence(const RowConfig& config, const Resources& resources, double element) {
  const double piece = static_cast<double>(config.threads_per_row * resources.vector) * element;
  if (resources.chunks == 1 || piece >= kCacheLine) return 1;
  return piece > kSector ? 1.03 : 1.25;
}

}  // namespace

double estimate_ms(const RowSpec& spec, Direction direction, const RowConfig& config, const DeviceSpec& device) {
  const Resources resources(spec, direction, config);
  const RowInterface interface = spec.interface(direction);
  const auto width = static_cast<double>(interface.width), element = static_cast<double>(size_of(spec.dtype()));
  double inputs = 0, outputs = 0, sums = 0;
  for (const RowOperand& input : interface.inputs) inputs += input.kind == RowOperandKind::kRow ? 1 : 0;
  for (const RowOperand& output : interface.outputs) (output.kind == RowOperandKind::kRow ? outputs : sums) += 1;
  const double multiprocessors = static_cast<double>(device.sm_count);
  const double rows = kRows / multiprocessors;
  const bool persistent = config.schedule == "persistent";
  const double resident = static_cast<double>(persistent ? config.blocks_per_sm : resources.resident(config, device));
  const double resident_rows = static_cast<double>(resources.rows) * resident;

  // Bytes that are on their way at any time: while a row is computed nothing is, unless the next one is loaded
  // meanwhile, or another CTA takes the place of one that is done.
  const double in_flight = resident_rows * inputs * width * element * (config.stages > 1 || !persistent ? 1 : 0.5);
  const double needed = kBytesInFlight * 2 * inputs / (inputs + outputs);  // more of it are reads
  const double again = resources.hold_row ? 0 : 2 * inputs * width * element / kL2Bytes;
  const double memory = rows * (kCopyWins * (inputs + outputs) * width * element / kBytes + again) *
                        std::max(1.0, needed / in_flight) * divergence(config, resources, element) *
                        (persistent ? 1 : 1 + kLateWarps * static_cast<double>(std::max<int64_t>(0, config.warps - 4)));

  const double elements = static_cast<double>(resources.chunks * resources.vector);
  const double accesses = static_cast<double>(resources.chunks) * (inputs + outputs) * kAccess;
  const double per_element = spec.operations(direction) * (persistent ? 1 : kGridFused) + inputs + outputs +
                             (persistent ? kDraw : kGridDraw) * static_cast<double>(interface.drawn);
  const double instructions =
      static_cast<double>(config.threads_per_row) *
      ((persistent ? kRowInstructions : kGridRowInstructions) + accesses + elements * per_element);
  // A scheduler with few warps waits for results of arithmetic, too.
  const double warps = static_cast<double>(config.warps) * resident / kSchedulers;
  const double issue = rows * instructions / kLanes * (1 + (persistent ? 1 : 4) / warps);

  constexpr double kRounds = 2;
  const double tree = std::bit_width(static_cast<uint64_t>(config.threads_per_row)) - 1;
  const double round =
      tree * kShuffleCycles + elements * kElementCycles * 4 + (config.threads_per_row > 32 ? kBarrierCycles : 0);
  const double latency =
      rows / resident_rows * (kRounds * round + elements * 4 + (config.stages > 1 ? 0 : kLoadCycles));

  double cycles = std::max({memory, issue, latency}) + 0.05 * (memory + issue + latency) + kStartCycles;
  if (sums > 0) {
    const double partial = static_cast<double>(config.blocks_per_sm) * sums * width * 4;
    cycles += kFollowCycles + 2 * partial / kBytes;
  }
  return cycles / kClockKhz;
}

}  // namespace hstujit::row
