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
constexpr int64_t kReadAnewBase = 32;      // of rows that are read from shared memory for each round of sums,
constexpr int64_t kReadAnewPerInput = 4;   // and for each of their inputs beyond kFewInputs
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
// Registers that the compiler takes where there are more: it loads all of a row and of the vectors before it uses any.
// Was within 20 % for 35 kernels of sm_90a.
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

// Words that a thread that walks rows keeps besides its share of them, of vectors and of sums.
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

// Registers of a thread, by what they are for.
struct Words {
  int64_t row_inputs = 0;
  int64_t elements = 0;  // of a row
  int64_t held = 0;      // what is held of a row the compiler keeps as fp32, between its uses,
  int64_t loading = 0;   // what is on its way is as it is in memory
  int64_t live = 0;      // of an element with a long formula: results that both the sums and the outputs are made of
  int64_t drawn = 0;     // random numbers
  int64_t parts = 0;
  int64_t chunk_vectors = 0;   // vectors of a chunk as fp32,
  int64_t loaded_vectors = 0;  // and with what loads of them take
  int64_t base = 0;
  int64_t holding = 0;  // all of them where the row is held, but for vectors
};

bool is_in_shared(const RowConfig& config) { return config.stages > kRegisterStages; }

// The shares of threads, and what a thread has of them.
void divide_rows(const RowSpec& spec, const RowInterface& interface, const RowConfig& config, Resources& all) {
  all.threads = 32 * config.warps;
  all.rows = all.threads / config.threads_per_row;
  all.vector = spec.elements_together();
  all.vectors = interface.width / all.vector;
  all.chunks = ceil_div(all.vectors, config.threads_per_row);
  for (const RowOperand& input : interface.inputs) {
    if (input.kind == RowOperandKind::kRow) all.row_words += all.chunks * words_of(input, all.vector);
    if (input.kind == RowOperandKind::kVector) all.vector_words += all.chunks * all.vector;
  }
  for (const RowOperand& output : interface.outputs) {
    if (output.kind == RowOperandKind::kColumnSum) all.sum_words += all.chunks * all.vector;
    if (output.kind == RowOperandKind::kGroupSum) all.sum_words += all.chunks;
    if (output.kind == RowOperandKind::kTableSum) {
      all.sum_words = all.chunks * all.vector;  // tables are gone through one after the other
      all.rows_ahead = std::clamp(kWordsAhead / all.row_words, int64_t{1}, kMaxRowsAhead);
    }
  }
  all.parts = parts_of(interface, all.vectors, all.chunks, config.threads_per_row);
  all.register_cap =
      std::min(kMaxRegisters, round_down(kRegisters / (all.threads * config.blocks_per_sm), kRegisterUnit));
}

int64_t ring_bytes_of(const RowSpec& spec, const RowInterface& interface, const RowConfig& config,
                      const Resources& all) {
  if (!is_in_shared(config)) return 0;
  const int64_t row_bytes =
      count_of(interface.inputs, RowOperandKind::kRow) * interface.width * static_cast<int64_t>(size_of(spec.dtype()));
  const int64_t groups = all.threads / std::max<int64_t>(32, config.threads_per_row);
  return (config.stages - 1) * (all.rows * row_bytes + groups * kRingBarrierBytes);
}

int64_t base_words(const RowSpec& spec, Direction direction, const RowInterface& interface, const RowConfig& config,
                   const Resources& all) {
  if (is_persistent(config)) return kBase;
  const bool outputs_wait = interface.outputs.size() > 1 && spec.operations(direction) > grid::kOperations;
  return grid::kBase + all.chunks + (config.threads_per_row > 32 ? grid::kExchange : 0) +
         (outputs_wait ? grid::kOutputs : 0);
}

Words count_words(const RowSpec& spec, Direction direction, const RowInterface& interface, const RowConfig& config,
                  const Resources& all) {
  const bool persistent = is_persistent(config);
  Words words;
  words.row_inputs = count_of(interface.inputs, RowOperandKind::kRow);
  words.elements = all.chunks * all.vector;
  words.held = words.elements * words.row_inputs;
  words.loading = is_in_shared(config)
                      ? kRingWords
                      : (config.stages - 1 + all.rows_ahead) * all.row_words + (all.rows_ahead > 0 ? kTableWords : 0);
  words.live = static_cast<int64_t>(std::max(0.0, spec.operations(direction) - kShortFormula) / 4);
  words.drawn = interface.drawn > 0 ? kDrawWords + interface.drawn * all.vector : 0;
  words.parts = (all.parts - 1) * kPartWords;
  words.chunk_vectors = all.vector_words / all.chunks;
  words.loaded_vectors = words.chunk_vectors + (persistent ? 0 : 4);
  words.base = base_words(spec, direction, interface, config, all);
  words.holding =
      persistent ? walking_words(spec, direction, interface, words.elements) + all.sum_words + all.row_words +
                       words.loading + words.parts
                 : words.base + all.sum_words + words.held + words.live * words.elements + words.drawn + words.parts;
  return words;
}

// Whether rows are read from shared memory for each use: of many elements with long formulas, or of many inputs, the
// compiler keeps more than is foreseen.
bool stays_in_shared(const RowSpec& spec, Direction direction, const RowConfig& config, const Words& words) {
  return is_in_shared(config) && config.threads_per_row >= kWideThreads && words.elements > kFewElements &&
         (spec.operations(direction) > walk::kShortFormula || words.row_inputs > kFewInputs);
}

int64_t needed_registers(const RowConfig& config, const Words& words, const Resources& all) {
  if (all.hold_vectors) return words.holding + all.vector_words;
  if (all.hold_row) return words.holding + words.loaded_vectors;
  if (is_in_shared(config)) {
    const int64_t further_inputs = std::max<int64_t>(0, words.row_inputs - kFewInputs);
    return kReadAnewBase + kReadAnewPerInput * further_inputs + kRingWords + all.sum_words +
           all.vector * (words.row_inputs + words.live) + words.drawn + words.parts;
  }
  // Rows of few threads, which more would hold, the compiler holds even where they are loaded for each use.
  const int64_t live_unheld = words.live * (config.threads_per_row < kManyThreads ? words.elements : all.vector);
  return words.base + all.sum_words + 2 * all.vector * words.row_inputs + words.chunk_vectors + 12 + live_unheld +
         words.drawn + words.parts;
}

int64_t taken_registers(const RowInterface& interface, const Words& words, const Resources& all) {
  if (!all.hold_row) return static_cast<int64_t>(kTaken * static_cast<double>(all.registers_needed));
  int64_t loaded_vector_words = 0;
  for (const RowOperand& input : interface.inputs) {
    if (input.kind == RowOperandKind::kVector) loaded_vector_words += all.chunks * words_of(input, all.vector);
  }
  const auto further_outputs = static_cast<int64_t>(interface.outputs.size()) - 1;
  return grid::kTakenBase + words.held + loaded_vector_words + words.elements * (words.live + further_outputs / 2);
}

// The widest rows have a config, though some of their registers may spill: there is no better one.
void admit_widest_rows(const RowConfig& config, const Words& words, Resources& all) {
  // Rows that are added to a table's sums stay in registers, with few loads ahead.
  if (all.rows_ahead > 0 && !all.hold_row && config.threads_per_row == kTableThreads && all.threads == kTableThreads &&
      words.elements <= kMaxHeldElements) {
    all.rows_ahead = 1;
    all.hold_row = true;
    all.registers_needed = std::min(all.registers_needed, all.register_cap);
  }
  // With long formulas, the config of the most registers.
  if (!all.hold_row && !is_in_shared(config) && config.threads_per_row == kManyThreads && all.threads == kManyThreads) {
    all.registers_needed = std::max(kBase + all.sum_words + all.vector * words.row_inputs,
                                    std::min(all.registers_needed, all.register_cap));
  }
}

}  // namespace

Resources::Resources(const RowSpec& spec, Direction direction, const RowConfig& config) {
  const RowInterface& interface = spec.interface(direction);
  divide_rows(spec, interface, config, *this);
  ring_bytes = ring_bytes_of(spec, interface, config, *this);
  const Words words = count_words(spec, direction, interface, config, *this);
  hold_row = !stays_in_shared(spec, direction, config, words) && words.elements <= kMaxHeldElements &&
             words.holding + words.loaded_vectors <= register_cap;
  hold_vectors = is_persistent(config) && hold_row && vector_words <= kMaxVectorWords &&
                 words.holding + vector_words <= register_cap;
  registers_needed = needed_registers(config, words, *this);
  registers_taken = taken_registers(interface, words, *this);
  admit_widest_rows(config, words, *this);
}

int64_t Resources::resident(const RowConfig& config, const DeviceSpec& device) const {
  const int64_t by_registers = kRegisters / (threads * round_up(registers_taken, kRegisterUnit));
  return std::max(config.blocks_per_sm, std::min(by_registers, device.max_threads / threads));
}

}  // namespace hstujit::row
