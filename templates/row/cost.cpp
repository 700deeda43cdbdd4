#include "templates/row/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "templates/row/operands.h"
#include "templates/row/resources.h"

namespace hstujit::row {

namespace {

constexpr double kElements = 1 << 26;  // of a tensor of rows: a launch says no number of them
constexpr double kClockKhz = 1.7e6;
constexpr double kBytes = 19;        // of device memory, per multiprocessor and clock
constexpr double kLanes = 128;       // of a multiprocessor, each with an instruction a clock
constexpr double kSchedulers = 4;    // of a multiprocessor
constexpr double kLoadCycles = 900;  // from a load to its value, where all multiprocessors load
constexpr double kShuffleCycles = 28;
constexpr double kRounds = 2;           // of sums over a row, about
constexpr double kDrawOperations = 5;   // of a random number, as operators count them
constexpr double kStartCycles = 4000;   // of a launch
constexpr double kFollowCycles = 5000;  // of the kernel that adds up the partial sums of column sums
constexpr double kPartialCopies = 4;    // a partial sum is written and read, the latter by few CTAs
constexpr double kL2Bytes = 40;
constexpr double kSector = 32;      // bytes of device memory that are read or written together
constexpr double kCacheLine = 128;  // bytes

// CTAs that walk rows.
struct WalkCost {
  double copy_wins;               // over the bytes alone, at best
  double row_instructions;        // of a thread for each row,
  double shared_row;              // and besides where warps share it
  double instructions;            // of an operation of an element
  double access_instructions;     // of an element of an input or an output
  double draw_instructions;       // of a random number
  double vector_instructions;     // of an element of a vector that is loaded for each row
  double few_warps;               // what a scheduler with one warp waits for results of arithmetic
  double row_cycles;              // from a row's first instruction to its last, but for what follows
  double operation_cycles;        // of an operation of an element
  double barrier, barrier_warps;  // cycles of a round, where warps share a row, and for each warp of the CTA besides
  double overlap;                 // the norm of memory, issue and latency that the time is
  double on_the_way;              // of the memory's time, for each doubling of the bytes on their way
};
// Rows in registers. Fitted to 114 timings on an H200 (2026-11-24) of ten kernels with sums over rows and two without,
// at widths of 512, 1024 and 4096, of which the choices are within 6.2 % of the best.
constexpr WalkCost kInRegisters = {
    .copy_wins = 1.08,
    .row_instructions = 31.7,
    .shared_row = 0,
    .instructions = 0.475,
    .access_instructions = 0.2,
    .draw_instructions = 6.66,
    .vector_instructions = 0,
    .few_warps = 0.63,
    .row_cycles = 318,
    .operation_cycles = 2.07,
    .barrier = 221,
    .barrier_warps = 7.9,
    .overlap = 2.489,
    .on_the_way = 0,
};
// Rows that wait in shared memory. Fitted to 409 timings on an H200 (2026-11-25) of fourteen kernels, at widths from 64
// to 8192, of which the choices are within 5.9 % of the best, 1.6 % in the mean.
constexpr WalkCost kInShared = {
    .copy_wins = 1.094,
    .row_instructions = 0,
    .shared_row = 126,
    .instructions = 0.426,
    .access_instructions = 0,
    .draw_instructions = 7.76,
    .vector_instructions = 4.94,
    .few_warps = 2.27,
    .row_cycles = 395,
    .operation_cycles = 0.688,
    .barrier = 17,
    .barrier_warps = 17.3,
    .overlap = 4.52,
    .on_the_way = 0.0142,
};
constexpr double kReadsAnew = 1.5;        // instructions, where a row stays in shared memory: of three kernels
constexpr double kBytesOnTheWay = 65536;  // of a multiprocessor, that are enough

// CTAs that have one group of rows each.
namespace grid {
// Bytes of a multiprocessor that keep the memory busy where half of what it does are reads.
constexpr double kBytesInFlight = 32768;
constexpr double kCopyWins = 0.97;
constexpr double kElementCycles = 0.75;  // of a warp's chain of dependent additions, per element and round
constexpr double kBarrierCycles = 90;
// Instructions of a thread, fitted to the machine code of 36 kernels, of which they are within 18 %.
constexpr double kRowInstructions = 57;  // of a row: addresses, statistics, shuffles, beginning and end,
constexpr double kSharedRow = 16;        // and besides where warps share it
constexpr double kFused = 0.61;          // of an operation: some are one with others
constexpr double kAccess = 1.63;         // of an element of an input or an output
constexpr double kDraw = 9.6;            // of a random number
constexpr double kLateWarps = 0.015;     // of the time, for each warp beyond four that a CTA waits for to end
}  // namespace grid

// Sums of tables.
struct TableSumsCost {
  double copy_wins;       // over the bytes alone, at best
  double elements;        // of a row of a thread, at best; twice as many, or half,
  double other_elements;  // take so much longer
  double warps;           // of a multiprocessor, at least; half as many
  double fewer_warps;     // take so much longer
  double blocks;          // for each CTA of a multiprocessor but one: parts of runs to be put together
};
// Fitted to 24 timings on an H200 (2026-11-24) of three operators at a width of 512.
constexpr TableSumsCost kInOrder = {1.3, 16, 0.09, 16, 0.07, 0.01};
constexpr double kSortCycles = 85000;
// The same as rows in order, but for what one pass less brings: 58 timings on an H200 (2026-11-25) of one operator are
// within 6 % of one another where eight warps and more are resident.
constexpr TableSumsCost kSegments = {1.05, 16, 0.09, 16, 0.07, 0.01};
// Fitted to 60 timings on an H200 (2026-11-25) of three operators at a width of 512.
constexpr TableSumsCost kAtomic = {1.3, 4, 0.15, 8, 0.25, -0.01};

// Rows that are no multiple of a wide access, a few threads each. Fitted to 75 timings on an H200 (2026-11-24) of
// layer_norm at nine odd widths from 7 to 127.
namespace scattered {
constexpr double kWideAccess = 8;    // bytes
constexpr double kCachedChunks = 4;  // accesses of a thread to a row, whose lines L1 keeps until the last one
constexpr double kLines = 2.7;       // of the time, for each further access and lines of other rows between
}  // namespace scattered

// Accesses of a warp to pieces of rows that are shorter than a cache line, of which others access the rest.
double divergence(const RowConfig& config, const Resources& resources, double element) {
  const double access = static_cast<double>(resources.vector) * element;
  const double piece = static_cast<double>(config.threads_per_row) * access;
  if (access < scattered::kWideAccess) {
    const double further = std::max(0.0, static_cast<double>(resources.chunks) - scattered::kCachedChunks);
    return std::max(1.25, scattered::kLines * std::sqrt(further / piece));
  }
  if (resources.chunks == 1 || piece >= kCacheLine) return 1;
  return piece > kSector ? 1.03 : 1.25;
}

struct Rows {
  double width = 0, element_bytes = 0;       // of a row
  double inputs = 0, outputs = 0, sums = 0;  // rows that are read and written, sums over all rows
  double vectors = 0;                        // that all rows share
  double of_multiprocessor = 0;
  double resident = 0;  // of a multiprocessor at a time
  double warps = 0;     // of a scheduler

  double bytes() const { return (inputs + outputs) * width * element_bytes; }
};

double walk_cycles(const RowSpec& spec, Direction direction, const RowConfig& config, const Resources& resources,
                   const Rows& rows) {
  const auto drawn = static_cast<double>(spec.interface(direction).drawn);
  const double operations = spec.operations(direction) - kDrawOperations * drawn;
  const auto elements = static_cast<double>(resources.chunks * resources.vector);
  const bool shares_row = config.threads_per_row > 32;
  const bool in_shared = config.stages > kRegisterStages;
  const WalkCost& cost = in_shared ? kInShared : kInRegisters;
  // Rows that stay neither in registers nor in shared memory are loaded again, most of them from L2.
  const double again =
      resources.hold_row || in_shared ? 0 : 2 * rows.inputs * rows.width * rows.element_bytes / kL2Bytes;
  const double on_the_way =
      rows.resident * rows.inputs * rows.width * rows.element_bytes * static_cast<double>(config.stages);
  const double memory = rows.of_multiprocessor * (cost.copy_wins * rows.bytes() / kBytes + again) *
                        divergence(config, resources, rows.element_bytes) *
                        (1 + cost.on_the_way * std::max(0.0, std::log2(on_the_way / kBytesOnTheWay)));

  const double per_element = cost.instructions * operations + cost.access_instructions * (rows.inputs + rows.outputs) +
                             cost.draw_instructions * drawn +
                             cost.vector_instructions * (resources.hold_vectors ? 0 : rows.vectors);
  const double instructions = static_cast<double>(config.threads_per_row) *
                              (cost.row_instructions + (shares_row ? cost.shared_row : 0) +
                               elements * per_element * (in_shared && !resources.hold_row ? kReadsAnew : 1));
  const double issue = rows.of_multiprocessor * instructions / kLanes * (1 + cost.few_warps / rows.warps);

  const double tree = std::bit_width(static_cast<uint64_t>(std::min<int64_t>(config.threads_per_row, 32))) - 1;
  const double barrier = shares_row ? cost.barrier + cost.barrier_warps * static_cast<double>(config.warps) : 0;
  const double row = cost.row_cycles + kRounds * (tree * kShuffleCycles + barrier) +
                     elements * cost.operation_cycles * operations + (config.stages > 1 ? 0 : kLoadCycles);
  const double latency = rows.of_multiprocessor / rows.resident * row;

  const auto power = [&](double cycles) { return std::pow(cycles, cost.overlap); };
  return std::pow(power(memory) + power(issue) + power(latency), 1 / cost.overlap);
}

double grid_cycles(const RowSpec& spec, Direction direction, const RowConfig& config, const Resources& resources,
                   const Rows& rows) {
  const double in_flight = rows.resident * rows.inputs * rows.width * rows.element_bytes;
  const double needed = grid::kBytesInFlight * 2 * rows.inputs / (rows.inputs + rows.outputs);  // more of it are reads
  const double memory = rows.of_multiprocessor * grid::kCopyWins * rows.bytes() / kBytes *
                        std::max(1.0, needed / in_flight) * divergence(config, resources, rows.element_bytes) *
                        (1 + grid::kLateWarps * static_cast<double>(std::max<int64_t>(0, config.warps - 4)));

  const auto drawn = static_cast<double>(spec.interface(direction).drawn);
  const auto elements = static_cast<double>(resources.chunks * resources.vector);
  const double per_element = grid::kFused * (spec.operations(direction) - kDrawOperations * drawn) +
                             grid::kAccess * (rows.inputs + rows.outputs) + grid::kDraw * drawn;
  const double of_row = grid::kRowInstructions + (config.threads_per_row > 32 ? grid::kSharedRow : 0);
  const double instructions = static_cast<double>(config.threads_per_row) * (of_row + elements * per_element);
  // A scheduler with few warps waits for results of arithmetic, too.
  const double issue = rows.of_multiprocessor * instructions / kLanes * (1 + 4 / rows.warps);

  const double tree = std::bit_width(static_cast<uint64_t>(config.threads_per_row)) - 1;
  const double round = tree * kShuffleCycles + elements * grid::kElementCycles * 4 +
                       (config.threads_per_row > 32 ? grid::kBarrierCycles : 0);
  const double latency = rows.of_multiprocessor / rows.resident * (kRounds * round + elements * 4 + kLoadCycles);
  return std::max({memory, issue, latency}) + 0.05 * (memory + issue + latency);
}

}  // namespace

double estimate_ms(const RowSpec& spec, Direction direction, const RowConfig& config, const DeviceSpec& device) {
  const Resources resources(spec, direction, config);
  const RowInterface& interface = spec.interface(direction);
  const bool walks = config.schedule == "persistent";
  const auto blocks = static_cast<double>(walks ? config.blocks_per_sm : resources.resident(config, device));
  Rows rows;
  rows.width = static_cast<double>(interface.width);
  rows.element_bytes = static_cast<double>(size_of(spec.dtype()));
  rows.inputs = static_cast<double>(count_of(interface.inputs, RowOperandKind::kRow));
  rows.vectors = static_cast<double>(count_of(interface.inputs, RowOperandKind::kVector));
  for (const RowOperand& output : interface.outputs)
    (output.kind == RowOperandKind::kRow ? rows.outputs : rows.sums) += 1;
  rows.of_multiprocessor = kElements / rows.width / static_cast<double>(device.sm_count);
  rows.resident = static_cast<double>(resources.rows) * blocks;
  rows.warps = static_cast<double>(config.warps) * blocks / kSchedulers;

  double cycles = kStartCycles + (walks ? walk_cycles(spec, direction, config, resources, rows)
                                        : grid_cycles(spec, direction, config, resources, rows));
  if (rows.sums > 0) cycles += kFollowCycles + kPartialCopies * blocks * rows.sums * rows.width * 4 / kBytes;
  return cycles / kClockKhz;
}

namespace {

double table_sums_cycles(const RowSpec& spec, const RowConfig& config, int64_t elements, const DeviceSpec& device,
                         const TableSumsCost& cost) {
  const RowInterface& interface = spec.interface(Direction::kBackward);
  const auto rows = static_cast<double>(count_of(interface.inputs, RowOperandKind::kRow) +
                                        count_of(interface.outputs, RowOperandKind::kRow));
  const double bytes = rows * kElements * static_cast<double>(size_of(spec.dtype()));
  const auto blocks = static_cast<double>(config.blocks_per_sm);
  const double warps = static_cast<double>(config.warps) * blocks;
  const double slower = (1 + cost.other_elements * std::abs(std::log2(static_cast<double>(elements) / cost.elements))) *
                        (1 + cost.fewer_warps * std::max(0.0, std::log2(cost.warps / warps))) *
                        (1 + cost.blocks * (blocks - 1));
  return kStartCycles + bytes * cost.copy_wins / kBytes / static_cast<double>(device.sm_count) * slower;
}

}  // namespace

double estimate_table_sums_ms(const RowSpec& spec, const RowConfig& config, const DeviceSpec& device) {
  const Resources resources(spec, Direction::kBackward, config);
  const double cycles = table_sums_cycles(spec, config, resources.chunks * resources.vector, device, kInOrder);
  const bool sorted = finds_in_order(spec.interface(Direction::kBackward).outputs_of(RowOperandKind::kTableSum));
  return (cycles + (sorted ? 0 : kSortCycles)) / kClockKhz;
}

double estimate_segment_sums_ms(const RowSpec& spec, const RowConfig& config, const DeviceSpec& device) {
  const Resources resources(spec, Direction::kBackward, config);
  return table_sums_cycles(spec, config, resources.chunks * resources.vector, device, kSegments) / kClockKhz;
}

double estimate_atomic_table_sums_ms(const RowSpec& spec, const RowConfig& config, int64_t elements,
                                     const DeviceSpec& device) {
  return table_sums_cycles(spec, config, elements, device, kAtomic) / kClockKhz;
}

}  // namespace hstujit::row
