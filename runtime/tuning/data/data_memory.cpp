#include "runtime/tuning/data/data_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/program.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/cgroup.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

// Bytes of an element while data are made: as float64 and packed, or packed alone; and with the answer in float64, two
// outputs, and spread copies of all. Measured on the host with fp32: 13 and 34.
constexpr double kDrawnBytes = 16, kPackedBytes = 4, kCheckedBytes = 36;
// Of what a program's steps leave to one another: the answer in float64 and its variance.
constexpr double kBetweenStepsBytes = 16;
// Of a sequence, for each tensor that has a number of it: integers, and those of the copies that a comparison makes.
// Measured on the host, 80 and a few of the sequence.
constexpr double kSequenceBytes = 96;

double bytes_of_element(DrawnFor use) {
  return use == DrawnFor::kChecking ? kCheckedBytes : use == DrawnFor::kRunning ? kDrawnBytes : kPackedBytes;
}

// What is generated together, and whether its size follows from the batch, or from the instance's parameters alone.
struct DataShare {
  std::string name;
  double bytes = 0;
  bool of_batch = false;
  std::string shape = {};  // of what does not follow from the batch
};

struct DataBatch {
  const BatchSize& size;
  int64_t max_seq_len;
  std::map<std::string, int64_t> tables;  // OpSpec::generated_sizes

  // Values of symbols that nothing tells count as 1.
  int64_t extent(const Dimension& dimension) const {
    if (dimension.is_constant()) return dimension.bias;
    if (dimension.is_uniform()) return size.rows_of(kQueryAxis);
    if (dimension.is_scalar()) return dimension.integer == "max_seq_len" ? max_seq_len : 1;
    if (dimension.symbol == "B") return dimension.size(size.sequences);
    if (const auto table = tables.find(dimension.symbol); table != tables.end()) return dimension.size(table->second);
    const bool rows = dimension.symbol == kSequenceAxis || size.other_rows.contains(dimension.symbol);
    return rows ? dimension.size(size.rows_of(dimension.symbol)) : 1;
  }

  DataShare share(const Argument& argument, double bytes) const {
    DataShare share{argument.name, bytes};
    for (const Dimension& dimension : argument.shape) {
      share.bytes *= static_cast<double>(extent(dimension));
      share.of_batch = share.of_batch || !dimension.is_constant();
    }
    if (!share.of_batch) share.shape = " " + shape_text(argument);
    return share;
  }
};

std::vector<DataShare> shares_of(const OpSpec& spec, Direction direction, const DataBatch& batch, DrawnFor use) {
  const Signature signature = spec.signature(direction);
  const double bytes = bytes_of_element(use);
  DataShare lengths{"the lengths", 0, true};
  std::vector<DataShare> shares;
  for (const Argument& argument : signature) {
    if (argument.semantic == Semantic::kOffsets || argument.semantic == Semantic::kCounts) {
      lengths.bytes += static_cast<double>(batch.size.sequences) * kSequenceBytes;
    } else if (argument.kind == ArgumentKind::kTensor) {
      // Rows are repeated for timing; what has none is drawn whole.
      const bool repeated = has_rows(argument) || has_parts(argument);
      shares.push_back(batch.share(argument, repeated ? bytes : std::max(bytes, kDrawnBytes)));
    }
  }
  shares.insert(shares.begin(), std::move(lengths));
  const Program* const program = spec.program(direction);
  if (program == nullptr || use != DrawnFor::kChecking) return shares;
  DataShare between{"what its steps leave to one another", 0, true};
  for (const Argument& temporary : program->temporaries)
    between.bytes += batch.share(temporary, kBetweenStepsBytes).bytes;
  shares.push_back(std::move(between));
  return shares;
}

// What there is, and whose.
struct DataRoom {
  double bytes;
  std::string_view text;
};

DataRoom data_room() {
  const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  rlimit limit{};
  DataRoom room{machine, "the machine has"};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (limited && static_cast<double>(limit.rlim_cur) < room.bytes)
    room = {static_cast<double>(limit.rlim_cur), "this process may have (ulimit -v)"};
  const std::optional<uint64_t> group = cgroup_memory_limit();
  if (group && static_cast<double>(*group) < room.bytes)
    room = {static_cast<double>(*group), "this process's control group may have (memory.max)"};
  return room;
}

}  // namespace

Status check_data_memory(const OpSpec& spec, Direction direction, const BatchSize& batch, int64_t max_seq_len,
                         DrawnFor use) {
  Lengths lengths;
  lengths.max_seq_len = max_seq_len;
  const std::vector<DataShare> shares =
      shares_of(spec, direction, {batch, max_seq_len, spec.generated_sizes(lengths)}, use);
  double needed = 0;
  for (const DataShare& share : shares) needed += share.bytes;
  const DataRoom room = data_room();
  if (needed <= room.bytes) return {};

  constexpr double kWorthNaming = 1.0 / 16;
  std::vector<std::string> of_batch, of_parameters, parameters;
  for (const DataShare& share : shares) {
    if (share.bytes < kWorthNaming * needed) continue;
    (share.of_batch ? of_batch : of_parameters).push_back(share.name + share.shape);
    if (!share.of_batch) parameters.push_back(share.name);
  }
  const Signature signature = spec.signature(direction);
  const bool sequences = has_sequences(signature);
  const bool last_rows = find_argument(signature, Semantic::kMaxRows, kQueryAxis) >= 0;
  std::vector<std::string> what, smaller;
  if (!of_batch.empty()) {
    what.push_back(sequences
                       ? fmt::format("{} of {} with max_seq_len {}{}", fmt::join(of_batch, " and "),
                                     counted(batch.sequences, "sequence"), max_seq_len,
                                     last_rows ? " and " + counted(batch.rows_of(kQueryAxis), "row") + " of q" : "")
                       : fmt::format("{} of {}", fmt::join(of_batch, " and "), counted(batch.rows, "row")));
    smaller.emplace_back(!sequences  ? "fewer rows"
                         : last_rows ? "fewer sequences, or a smaller max_seq_len or delta_len"
                                     : "fewer sequences or a smaller max_seq_len");
  }
  if (!of_parameters.empty()) {
    what.push_back(fmt::format("{}", fmt::join(of_parameters, " and ")));
    smaller.push_back(fmt::format("parameters that make {} smaller", fmt::join(parameters, " and ")));
  }
  return Status(Code::kOutOfMemory,
                fmt::format("{} take {:.3g} bytes to generate; {} {:.3g}, so the config must have {}",
                            fmt::join(what, " and "), needed, room.text, room.bytes, fmt::join(smaller, ", or ")));
}

}  // namespace hstujit
