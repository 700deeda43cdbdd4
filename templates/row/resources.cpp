#include "templates/row/resources.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "compiler/support/integers.h"
#include "templates/row/operands.h"

namespace hstujit::row {

namespace {

constexpr int64_t kRegisters = 65536;      // of a multiprocessor
constexpr int64_t kMaxRegisters = 255;     // of a thread
constexpr int64_t kRegisterUnit = 8;       // registers come in multiples of it
constexpr int64_t kBase = 40;              // addresses, statistics, the arithmetic of a vector's elements
constexpr double kTaken = 1.35;            // registers of rows that are not held, where there are more than needed
constexpr int64_t kMaxHeldElements = 32;   // of a row in registers: their loads, too, take registers
constexpr double kShortFormula = 14;       // operations of an element
constexpr double kDrawOperations = 5;      // of a random number, as operators count them
constexpr int64_t kPartWords = 8;          // sums and statistics of a part of a row
constexpr int64_t kDrawWords = 32;         // keys and counters of random numbers
constexpr int64_t kTableThreads = 512;     // of the widest rows that are added to sums of tables
constexpr int64_t kFewElements = 16;       // of a thread
constexpr int64_t kFewInputs = 2;          // rows that a row's results follow from
constexpr int64_t kManyThreads = 256;      // of a row; as many as may have kMaxRegisters
constexpr int64_t kMaxVectorWords = 64;    // more are loaded for each row, from L1
constexpr int64_t kWordsAhead = 32;        // of rows that are loaded while others are added to a table's sums
constexpr int64_t kMaxRowsAhead = 6;       // of them
constexpr int64_t kReadAnewBase = 32;      // of rows that are read from shared memory for each round of sums
constexpr int64_t kRingWords = 14;         // places, addresses and phases of rows in shared memory
constexpr int64_t kRingBarrierBytes = 16;  // of a buffer of those: full and empty
constexpr int64_t kTableWords = 24;        // their numbers and keys, and what a run is known by

// CTAs that walk rows which stay in registers, as fitted to 400 kernels of sm_90a that were compiled for as many CTAs
// as there are registers for.
namespace walk {
constexpr int64_t kBase = 26;
constexpr int64_t kLeast = 44;         // whatever else there is
constexpr double kLive = 1.75;         // results of an element that are kept
constexpr double kLivePerInput = 0.6;  // and beyond three inputs, which wait for the outputs that they are read for
constexpr double kShortFormula = 20;   // operations of an element; longer ones keep more,
constexpr double kLongFormula = 2;     // at most
constexpr int64_t kNarrow = 8;         // elements of a thread; of more the compiler keeps more of each,
constexpr double kWide = 0.6;          // for each input beyond two,
constexpr double kWideDraws = 1.8;     // and for random numbers
constexpr int64_t kGroups = 12;        // places of groups, their numbers
constexpr int64_t kDraws = 8;          // a counter
}  // namespace walk

// CTAs that have one group of rows each: no next row is under way.
namespace grid {
constexpr int64_t kBase = 10;
constexpr int64_t kExchange = 16;  // besides, where warps of a row exchange sums,
constexpr int64_t kOutputs = 8;    // and where several outputs follow from more operations
constexpr double kOperations = 7;  // than these
// What the compiler takes where there are more: it loads all of a row and of the vectors before it uses any. Of 35
// kernels of sm_90a that is within 20 %.
constexpr int64_t kTakenBase = 12;
}  // namespace grid

int64_t words_of(const RowOperand& operand, int64_t elements) {
  return ceil_div(elements * static_cast<int64_t>(size_of(operand.dtype)), int64_t{4});
}

// As PartReducer::kParts of groups.cuh and of reduce.cuh.
int64_t parts_of(const RowInterface& interface, int64_t vectors, int64_t chunks, int64_t threads_per_row) {
  const int64_t group = vectors / interface.groups;
  if (interface.groups == 1) return 1;
  return std::has_single_bit(static_cast<uint64_t>(group))
             ? ceil_div(chunks, std::max(int64_t{1}, group / threads_per_row))
             : chunks;
}

// What a thread that walks rows keeps besides its share of them, of vectors and of sums.
int64_t walking_words(const RowSpec& spec, Direction direction, const RowInterface& interface, int64_t elements) {
  const auto inputs = static_cast<double>(count_of(interface.inputs, RowOperandKind::kRow));
  const double formula = spec.operations(direction) - kDrawOperations * static_cast<double>(interface.drawn);
  const double live = walk::kLive + walk::kLivePerInput * std::max(0.0, inputs - 3) +
                      std::clamp((formula - walk::kShortFormula) / 4, 0.0, walk::kLongFormula);
  const double wide = walk::kWide * std::max(0.0, inputs - 2) + (interface.drawn > 0 ? walk::kWideDraws : 0);
  const double results =
      live * static_cast<double>(elements) + wide * static_cast<double>(std::max<int64_t>(0, elements - walk::kNarrow));
  return std::max(walk::kLeast, walk::kBase + static_cast<int64_t>(std::ceil(results)) +
                                    (interface.groups > 1 ? walk::kGroups : 0) +
                                    (interface.drawn > 0 ? walk::kDraws : 0));
}

}  // namespace

Resources::Resources(const RowSpec& spec, Direction direction, const RowConfig& config) {
  const RowInterface& interface = spec.interface(direction);
  threads = 32 * config.warps;
  rows = threads / config.threads_per_row;
  vector = spec.elements_together();
  vectors = interface.width / vector;
  chunks = ceil_div(vectors, config.threads_per_row);
  int64_t row_inputs = 0, loaded_vector_words = 0;
  for (const RowOperand& input : interface.inputs) {
    if (input.kind == RowOperandKind::kRow) ++row_inputs;
    if (input.kind == RowOperandKind::kRow) row_words += chunks * words_of(input, vector);
    if (input.kind == RowOperandKind::kVector) {
      vector_words += chunks * vector;
      loaded_vector_words += chunks * words_of(input, vector);
    }
  }
  for (const RowOperand& output : interface.outputs) {
    if (output.kind == RowOperandKind::kColumnSum) sum_words += chunks * vector;
    if (output.kind == RowOperandKind::kGroupSum) sum_words += chunks;
    if (output.kind == RowOperandKind::kTableSum) {
      sum_words = chunks * vector;  // tables are gone through one after the other
      rows_ahead = std::clamp(kWordsAhead / row_words, int64_t{1}, kMaxRowsAhead);
    }
  }
  parts = parts_of(interface, vectors, chunks, config.threads_per_row);
  register_cap = std::min(kMaxRegisters, round_down(kRegisters / (threads * config.blocks_per_sm), kRegisterUnit));

  // What is held of a row the compiler keeps as fp32, between its uses; what is on its way is as it is in memory.
  const int64_t elements = chunks * vector;
  const int64_t held = elements * row_inputs;
  const bool in_shared = config.stages > kRegisterStages;
  const int64_t loading =
      in_shared ? kRingWords : (config.stages - 1 + rows_ahead) * row_words + (rows_ahead > 0 ? kTableWords : 0);
  if (in_shared) {
    const int64_t row_bytes = row_inputs * interface.width * static_cast<int64_t>(size_of(spec.dtype()));
    const int64_t groups = threads / std::max<int64_t>(32, config.threads_per_row);
    ring_bytes = (config.stages - 1) * (rows * row_bytes + groups * kRingBarrierBytes);
  }
  const int64_t chunk_vectors = vector_words / chunks;
  // Of long formulas it keeps results, too, that both the sums and the outputs are made of.
  const auto live = static_cast<int64_t>(std::max(0.0, spec.operations(direction) - kShortFormula) / 4);
  const int64_t drawn = interface.drawn > 0 ? kDrawWords + interface.drawn * vector : 0;
  const int64_t part_words = (parts - 1) * kPartWords;
  // Rows of few threads, which more would hold, it holds in this way even where they are loaded for each use.
  const int64_t live_unheld = live * (config.threads_per_row < kManyThreads ? elements : vector);
  const bool persistent = config.schedule == "persistent";
  const bool outputs_wait = interface.outputs.size() > 1 && spec.operations(direction) > grid::kOperations;
  const int64_t base = persistent ? kBase
                                  : grid::kBase + chunks + (config.threads_per_row > 32 ? grid::kExchange : 0) +
                                        (outputs_wait ? grid::kOutputs : 0);
  const int64_t holding =
      persistent ? walking_words(spec, direction, interface, elements) + sum_words + row_words + loading + part_words
                 : base + sum_words + held + live * elements + drawn + part_words;
  const int64_t loaded_vectors = chunk_vectors + (persistent ? 0 : 4);
  // Of many elements with long formulas, or of many inputs, the compiler keeps more than is foreseen.
  const bool stays_in_shared = in_shared && config.threads_per_row >= kWideThreads && elements > kFewElements &&
                               (spec.operations(direction) > walk::kShortFormula || row_inputs > kFewInputs);
  hold_row = !stays_in_shared && elements <= kMaxHeldElements && holding + loaded_vectors <= register_cap;
  hold_vectors = persistent && hold_row && vector_words <= kMaxVectorWords && holding + vector_words <= register_cap;
  registers_needed =
      hold_vectors ? holding + vector_words
      : hold_row   ? holding + loaded_vectors
      : in_shared  ? kReadAnewBase + kRingWords + sum_words + vector * (row_inputs + live) + drawn + part_words
                   : base + sum_words + 2 * vector * row_inputs + chunk_vectors + 12 + live_unheld + drawn + part_words;
  const auto further_outputs = static_cast<int64_t>(interface.outputs.size()) - 1;
  registers_taken = hold_row ? grid::kTakenBase + held + loaded_vector_words + elements * (live + further_outputs / 2)
                             : static_cast<int64_t>(kTaken * static_cast<double>(registers_needed));
  // Rows that are added to a table's sums stay in registers; the widest, with few loads ahead, may spill some.
  if (rows_ahead > 0 && !hold_row && config.threads_per_row == kTableThreads && threads == kTableThreads &&
      elements <= kMaxHeldElements) {
    rows_ahead = 1;
    hold_row = true;
    registers_needed = std::min(registers_needed, register_cap);
  }
  // Where the widest rows have long formulas, the config of the most registers may spill: there is no better one.
  if (!hold_row && !in_shared && config.threads_per_row == kManyThreads && threads == kManyThreads)
    registers_needed = std::max(kBase + sum_words + vector * row_inputs, std::min(registers_needed, register_cap));
}

int64_t Resources::resident(const RowConfig& config, const DeviceSpec& device) const {
  const int64_t by_registers = kRegisters / (threads * round_up(registers_taken, kRegisterUnit));
  return std::max(config.blocks_per_sm, std::min(by_registers, device.max_threads / threads));
}

}  // namespace hstujit::row
