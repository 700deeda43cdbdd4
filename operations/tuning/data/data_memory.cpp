#include "operations/tuning/data/data_memory.h"

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
#include "compiler/support/integers.h"
#include "compiler/support/text.h"
#include "operations/tuning/data/strided_data.h"

namespace hstujit {

namespace {

// Bytes of an element as it is drawn and as a reference gives it: float64, or int64.
constexpr double kValueBytes = 8;
// Bytes of any element while data are made, and of one that is only repeated for timing.
constexpr double kDrawnBytes = 16, kPackedBytes = 4;
// Bytes that a reference keeps beside an element of an input: rounded ones, sums of threads. Measured with products.
constexpr double kReferenceBytes = 4;
// Times that a run holds the packed tensors: as they are drawn, as the launch leaves them, and of a repeated one.
constexpr double kRunImages = 3, kCheckedImages = 2;
// Bytes of an element that a program's steps leave to one another: the answer in float64 and its variance.
constexpr double kBetweenStepsBytes = 16;
// Bytes of a sequence, for each tensor that has a number of it: integers, and those of the copies that a comparison
// makes. Measured on the host, 80 and a few of the sequence.
constexpr double kSequenceBytes = 96;

// Data that are generated together, and whether its size follows from the batch, or from the instance's parameters
// alone.
struct DataShare {
  std::string name;
  double bytes = 0;
  bool of_batch = false;
  std::string shape = {};  // of what does not follow from the batch

  std::string named() const { return name + shape; }
};

constexpr double kWorthNaming = 1.0 / 16;  // of all bytes

double bytes_of(const std::vector<DataShare>& shares) {
  double bytes = 0;
  for (const DataShare& share : shares) bytes += share.bytes;
  return bytes;
}

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

  std::vector<int64_t> shape(const Argument& argument) const {
    std::vector<int64_t> shape;
    for (const Dimension& dimension : argument.shape) shape.push_back(extent(dimension));
    return shape;
  }

  DataShare share(const Argument& argument, double bytes) const {
    DataShare share{argument.name, bytes};
    for (const Dimension& dimension : argument.shape) share.of_batch = share.of_batch || !dimension.is_constant();
    if (!share.of_batch) share.shape = " " + shape_text(argument);
    return share;
  }
};

double counted_elements(const std::vector<int64_t>& shape) {
  double elements = 1;
  for (const int64_t size : shape) elements *= static_cast<double>(size);
  return elements;
}

// Bytes that a comparison holds of a tensor at its peak: contiguous and strided ones, each as it was drawn and as the
// launch leaves it; the values of an input for both, or an output's answer; and what one output at a time is looked at
// with.
double checked_bytes(const Argument& argument, const std::vector<int64_t>& shape) {
  const double element = static_cast<double>(size_of(argument.dtype)), elements = counted_elements(shape);
  const double aligned = element * aligned_elements(argument, shape);
  const double strided = element * spread_elements(argument, shape);
  const double images = kCheckedImages * (aligned + strided);
  if (argument.role == ArgumentRole::kInput) return images + (2 * kValueBytes + kReferenceBytes) * elements;
  // Gathered from its strided rows, while that grows; then as integers, or beside two estimates of its variance.
  const double gathered = shape.size() < 2 ? 0 : strided + 3 * element * elements;
  const double compared = (element + (is_integer(argument.dtype) ? 1 : 2) * kValueBytes) * elements;
  return images + kValueBytes * elements + std::max(gathered, compared);
}

double bytes_of_tensor(const Argument& argument, const std::vector<int64_t>& shape, DrawnFor use) {
  if (use == DrawnFor::kChecking) return checked_bytes(argument, shape);
  const double element = static_cast<double>(size_of(argument.dtype));
  const double drawn = std::max(kDrawnBytes, kValueBytes + kRunImages * element);
  // Rows are repeated for timing; what has none is drawn whole.
  const bool repeated = use == DrawnFor::kTiming && (has_rows(argument) || has_parts(argument));
  return counted_elements(shape) * (repeated ? std::max(kPackedBytes, element) : drawn);
}

std::vector<DataShare> shares_of(const OpSpec& spec, Direction direction, const DataBatch& batch, DrawnFor use) {
  const Signature signature = spec.signature(direction);
  DataShare lengths{"the lengths", 0, true};
  std::vector<DataShare> shares;
  for (const Argument& argument : signature) {
    if (argument.semantic == Semantic::kOffsets || argument.semantic == Semantic::kCounts) {
      lengths.bytes += static_cast<double>(batch.size.sequences) * kSequenceBytes;
    } else if (argument.kind == ArgumentKind::kTensor) {
      shares.push_back(batch.share(argument, bytes_of_tensor(argument, batch.shape(argument), use)));
    }
  }
  shares.insert(shares.begin(), std::move(lengths));
  const Program* const program = spec.program(direction);
  if (program == nullptr || use != DrawnFor::kChecking) return shares;
  DataShare between{"what its steps leave to one another", 0, true};
  for (const Argument& temporary : program->temporaries)
    between.bytes += kBetweenStepsBytes * counted_elements(batch.shape(temporary));
  shares.push_back(std::move(between));
  return shares;
}

// With a row of each sequence, of the axes that say so.
template <typename IsShort>
BatchSize with_short_axes(BatchSize batch, const IsShort& is_short) {
  if (is_short(kSequenceAxis)) batch.rows = std::min(batch.rows, batch.sequences);
  for (auto& [axis, rows] : batch.other_rows)
    if (is_short(axis)) rows = std::min(rows, batch.sequences);
  return batch;
}

// The batch's first sequence, which has as many rows as each has on average.
BatchSize one_sequence_of(BatchSize batch) {
  const int64_t sequences = std::max<int64_t>(batch.sequences, 1);
  batch.sequences = 1;
  batch.rows = ceil_div(batch.rows, sequences);
  for (auto& [axis, rows] : batch.other_rows) rows = ceil_div(rows, sequences);
  return batch;
}

// A sequence of a row.
BatchSize least_batch(BatchSize batch) {
  batch.sequences = batch.rows = 1;
  for (auto& [axis, rows] : batch.other_rows) rows = 1;
  return batch;
}

// Room that exists, and whose it is.
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

double data_memory(const OpSpec& spec, Direction direction, const BatchSize& batch, int64_t max_seq_len, DrawnFor use) {
  Lengths lengths;
  lengths.max_seq_len = max_seq_len;
  return bytes_of(shares_of(spec, direction, {batch, max_seq_len, spec.generated_sizes(lengths)}, use));
}

Status check_data_memory(const OpSpec& spec, Direction direction, const BatchSize& batch, int64_t max_seq_len,
                         DrawnFor use) {
  const Signature signature = spec.signature(direction);
  const auto shares = [&](const BatchSize& size, int64_t length) {
    Lengths lengths;
    lengths.max_seq_len = length;
    return shares_of(spec, direction, {size, length, spec.generated_sizes(lengths)}, use);
  };
  const std::vector<DataShare> all = shares(batch, max_seq_len);
  const double needed = bytes_of(all);
  const DataRoom room = data_room();
  if (needed <= room.bytes) return {};

  std::vector<std::string> of_batch, of_parameters;
  for (const DataShare& share : all)
    if (share.bytes >= kWorthNaming * needed) (share.of_batch ? of_batch : of_parameters).push_back(share.named());
  const bool sequences = has_sequences(signature);
  const bool last_rows = find_argument(signature, Semantic::kMaxRows, kQueryAxis) >= 0;
  std::vector<std::string> what;
  if (!of_batch.empty()) {
    what.push_back(sequences
                       ? fmt::format("{} of {} with max_seq_len {}{}", fmt::join(of_batch, " and "),
                                     counted(batch.sequences, "sequence"), max_seq_len,
                                     last_rows ? " and " + counted(batch.rows_of(kQueryAxis), "row") + " of q" : "")
                       : fmt::format("{} of {}", fmt::join(of_batch, " and "), counted(batch.rows, "row")));
  }
  if (!of_parameters.empty()) what.push_back(fmt::format("{}", fmt::join(of_parameters, " and ")));

  // The parameters alone are to blame for a batch that has one of everything. Otherwise each that makes the batch large
  // may be less; what is large whatever the batch may be less, too.
  const std::vector<DataShare> least = shares(least_batch(batch), 1);
  const double least_needed = bytes_of(least);
  std::vector<std::string> of_sizes, smaller;
  if (least_needed <= room.bytes) {
    const auto helps = [&](const BatchSize& size, int64_t length) {
      return bytes_of(shares(size, length)) < (1 - kWorthNaming) * needed;
    };
    if (!sequences && helps(least_batch(batch), max_seq_len)) of_sizes.emplace_back("fewer rows");
    if (sequences && helps(one_sequence_of(batch), max_seq_len)) of_sizes.emplace_back("fewer sequences");
    std::vector<std::string_view> lengths;
    const auto of_delta = [&](std::string_view axis) { return last_rows && axis == kQueryAxis; };
    const auto of_max_seq_len = [&](std::string_view axis) { return !of_delta(axis); };
    if (sequences && helps(with_short_axes(batch, of_max_seq_len), 1)) lengths.emplace_back("max_seq_len");
    if (last_rows && helps(with_short_axes(batch, of_delta), max_seq_len)) lengths.emplace_back("delta_len");
    if (!lengths.empty()) of_sizes.push_back(fmt::format("a smaller {}", fmt::join(lengths, " or ")));
    if (!of_sizes.empty())
      smaller.push_back(fmt::format("{}", fmt::join(of_sizes, lengths.size() > 1 ? ", or " : " or ")));
  }
  std::vector<std::string> large;
  for (const DataShare& share : least)
    if (share.bytes >= kWorthNaming * (smaller.empty() ? least_needed : needed)) large.push_back(share.name);
  if (!large.empty() || smaller.empty())
    smaller.push_back(fmt::format("parameters that make {} smaller", fmt::join(large, " and ")));
  return Status(Code::kOutOfMemory,
                fmt::format("{} take {:.3g} bytes to generate; {} {:.3g}, so there must be {}",
                            fmt::join(what, " and "), needed, room.text, room.bytes, fmt::join(smaller, ", or ")));
}

}  // namespace hstujit
