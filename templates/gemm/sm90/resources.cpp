#include "templates/gemm/sm90/resources.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "templates/common/sm90/machine.h"

namespace hstujit::gemm_sm90 {

namespace {

constexpr int64_t kWarpgroup = 128, kWarpgroupRows = 64;
constexpr int64_t kBarrierBytes = 16;  // of a stage
constexpr int64_t kTileBytes = 72;     // of a stage, where the producer finds tiles: one, and its barriers
constexpr int64_t kPieceBytes = kPieceRows * sm90::kSwizzleBytes;
constexpr int64_t kPadding = 8;             // columns, as in cluster_partials.cuh
constexpr int64_t kProducerRegisters = 40;  // of a thread: what its addresses take
constexpr int64_t kSummingRegisters = 88;   // of one whose warpgroup adds up columns, too
constexpr int64_t kOtherRegisters = 56;     // of a consumer, beside sums: addresses, and what the epilogue reads

}  // namespace

int64_t row_blocks(const GemmConfig& config) {
  const int64_t rows = kWarpgroupRows * (config.ping_pong ? 1 : config.consumers);
  return config.block_m % rows == 0 ? config.block_m / rows : 0;
}

int64_t store_pieces(const GemmConfig& config) { return row_blocks(config) * (config.block_n / kPieceColumns); }

Resources::Resources(const GemmSpec& spec, const GemmConfig& config) {
  threads = kWarpgroup * (config.consumers + 1);
  // A factor whose sum dimension is not contiguous comes in whole lines of columns.
  const int64_t columns = spec.interface().b.transposed ? config.block_n : round_up(config.block_n, kDepth);
  const int64_t stage = (config.block_m + columns) * sm90::kSwizzleBytes;
  const int64_t barriers = kBarrierBytes + (spec.interface().per_sequence() ? kTileBytes : 0);
  shared_bytes = config.stages * stage + round_up(config.stages * barriers, int64_t{128});
  partial_bytes = config.cluster_k > 1 ? config.block_m * (config.block_n + kPadding) * 4 : 0;
  stage_bytes = config.stages * stage;
  if (config.split_k == 1 && config.cluster_k == 1) {
    // All of a tile, so that it leaves while the next one is multiplied; else two pieces in turn.
    const int64_t pieces = store_pieces(config), warps = 4 * config.consumers;
    const bool whole = shared_bytes + pieces * warps * kPieceBytes <= sm90::kSharedLimit - kReservedSharedMemory;
    store_buffers = whole ? pieces : std::min<int64_t>(pieces, 2);
    shared_bytes += store_buffers * warps * kPieceBytes;
  }
  producer_registers = spec.interface().column_sums ? kSummingRegisters : kProducerRegisters;
  consumer_registers = sm90::consumer_share(sm90::even_registers(threads, 1), config.consumers, producer_registers);
  registers_needed = row_blocks(config) * config.block_n / 2 + kOtherRegisters;
}

}  // namespace hstujit::gemm_sm90
