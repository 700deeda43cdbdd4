#include "templates/attention/sm90_backward_fused/cost.h"

#include <algorithm>
#include <vector>

#include "compiler/support/integers.h"
#include "templates/attention/sm90_backward_fused/resources.h"
#include "templates/attention/host/tile_counts.h"

namespace hstujit::sm90::backward {

namespace {

// Microseconds on an H200, read off the cells of bench/grid.json (docs/journal.md, entry 29).
constexpr double kBlock = 0.85;                // a block of 64 rows: what does not grow with the head dimensions,
constexpr double kBlockColumns = 1.43;         // and what does, for 256 columns of q and v
constexpr double kSharedMultiprocessor = 1.3;  // of a block, beside another block of threads
constexpr double kTile = 0.3;                  // between two tiles, as for a block,
constexpr double kTileColumns = 5.6;
constexpr double kOneBuffer = 1.3;              // and what it takes more where k and v have one buffer
constexpr double kListTail = 0.5;               // longest items of a list, at whose end others wait,
constexpr double kUnsortedTail = 1;             // where the longest may come last
constexpr double kLaunches = 6;                 // of clearing, kernel and, in any order, conversion
constexpr double kBytesPerMicrosecond = 4.1e6;  // of clearing and conversion
constexpr double kOfMeasured = 0.62;
// Of tiles that add in order (docs/journal.md, entry 31).
constexpr double kOrderedBlock = 1.08;
constexpr double kOrderedByPlace = 1.12;
constexpr double kOrderedTile = 1.1;
// Of whole sequences (entry 33): nobody waits, but a sum in global memory beside others in shared memory costs more.
constexpr double kWholeBlock = 0.95;
constexpr double kSumElsewhere = 1.05;

// Of a causal sequence's blocks, those whose sums have no room in shared memory, where others have.
double share_of_sums_elsewhere(const FusedResources& resources, const AttentionConfig& config, int64_t rows) {
  if (resources.kept_sums == 0) return 0;
  const int64_t room = (resources.first_sum + resources.kept_sums) * config.block_n;
  const double within = std::min(1.0, static_cast<double>(room) / static_cast<double>(std::max(rows, int64_t{1})));
  return 1 - within * within;
}

}  // namespace

double estimate_fused_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                         const ProblemSize& size) {
  const HstuAttentionParams& params = spec.params();
  const FusedResources resources(spec, config);
  const bool ordered = config.schedule == "ordered", whole = config.schedule == "whole";
  const auto resident = static_cast<double>(config.blocks_per_sm);
  const double shared = config.blocks_per_sm > 1 ? kSharedMultiprocessor : 1;
  const double columns = static_cast<double>(params.attn_dim + params.hidden_dim) / 256;
  const double waits = whole ? kWholeBlock : !ordered ? 1 : resources.tiles_by_place ? kOrderedByPlace : kOrderedBlock;
  const double block = shared * waits * (kBlock + kBlockColumns * columns);
  const double tile =
      kTile + kTileColumns * columns + (resources.kept_stages == 1 ? kOneBuffer : 0) + (ordered ? kOrderedTile : 0);

  // Means over the assumed sequences; the longest item of the list is a tile, or all of a sequence and head.
  const std::vector<SequenceSize> sequences = assumed_sequences(params, size);
  const auto lengths = static_cast<double>(sequences.size());
  double work = 0, longest = 0, rows = 0;
  for (const SequenceSize& sequence : sequences) {
    rows += static_cast<double>(sequence.rows) / lengths;
    const double elsewhere = whole ? share_of_sums_elsewhere(resources, config, sequence.rows) : 0;
    const double of_this = block * (1 + elsewhere * (kSumElsewhere - 1));
    double item = 0;
    for (const int64_t count : count_column_blocks(params, sequence, config.block_m, config.block_n)) {
      const double blocks = static_cast<double>(count) * of_this;
      work += (blocks + tile) / resident;
      item = whole ? item + blocks + tile : blocks;
      longest = std::max(longest, item);
    }
  }

  const auto batch = static_cast<double>(size.batch), heads = static_cast<double>(params.heads);
  const double balanced = balanced_batch(size);
  const double tail = whole && size.batch > resources.schedule_sequences ? kUnsortedTail : kListTail;
  const double kernel = heads * balanced / static_cast<double>(device.sm_count) * work / lengths + tail * longest;
  if (ordered || whole) return (kernel * batch / balanced + kLaunches) * kOfMeasured / 1000;
  // dq in fp32 is cleared and read, and written in 16 bits.
  constexpr double kBytesPerElement = 4 + 4 + 2;
  const double others = rows * balanced * heads * static_cast<double>(params.attn_dim) * kBytesPerElement;
  return ((kernel + others / kBytesPerMicrosecond) * batch / balanced + kLaunches) * kOfMeasured / 1000;
}

}  // namespace hstujit::sm90::backward
