#include "templates/gemm/sm80/resources.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "templates/gemm/slots.h"

namespace hstujit::gemm_sm80 {

namespace {

constexpr int64_t kTileUnit = 64;
constexpr int64_t kWarpgroup = 128;
constexpr int64_t kPieceBytes = 16, kLinePieces = gemm::kLineBytes / kPieceBytes;  // as in shared.cuh
constexpr int64_t kRegisters = 65536;                                              // of a multiprocessor
constexpr int64_t kRegisterUnit = 8;                                               // registers come in multiples of it
constexpr int64_t kBlockRows = 16;
constexpr int64_t kColumnSumRegisters =
    40;  // of a thread that adds up columns, too: 256 x 128 spills then, and is refused

// Registers of a thread: a block of rows of the first factor; and besides, addresses of loads and of the epilogue, and
// a block of columns: at least, and what the compiler takes where there are more.
struct Registers {
  int64_t block, least, other;
};
constexpr Registers kTensorCores = {4, 56, 100};  // of 42 kernels
constexpr Registers kSimt = {8, 96, 120};         // of 28

}  // namespace

bool well_formed(const GemmConfig& config) {
  const int64_t warps_n = 4 * config.consumers / kWarpsM;
  // In one round, all threads load a piece each of so many of a tile's rows, or columns.
  const int64_t loaded_rows = kWarpgroup * config.consumers / kLinePieces;
  return config.block_m > 0 && config.block_n > 0 && config.block_m % kTileUnit == 0 &&
         config.block_n % kTileUnit == 0 && config.block_m % loaded_rows == 0 && config.block_n % (32 * warps_n) == 0 &&
         config.stages >= 2;
}

Resources::Resources(const GemmSpec& spec, const GemmConfig& config) {
  threads = kWarpgroup * config.consumers;
  stage_bytes_of_a = config.block_m * gemm::kLineBytes;
  shared_bytes = config.stages * (stage_bytes_of_a + config.block_n * gemm::kLineBytes);
  const int64_t sums = config.block_m * config.block_n / threads;
  const Registers& registers = spec.is_ieee() ? kSimt : kTensorCores;
  const int64_t held = sums + config.block_m / kWarpsM / kBlockRows * registers.block;
  const int64_t column_sums = spec.interface().column_sums ? kColumnSumRegisters : 0;
  if (spec.interface().column_sums) {
    const int64_t columns = spec.interface().column_sums->of_a ? config.block_m : config.block_n;
    const int64_t pieces = columns * static_cast<int64_t>(size_of(spec.dtype())) / kPieceBytes;
    column_sum_bytes = threads / pieces * columns * static_cast<int64_t>(sizeof(float));
  }
  registers_needed = held + registers.least + column_sums;
  registers_taken = std::min(kMaxRegisters, held + registers.other + column_sums);
}

int64_t Resources::resident(const DeviceSpec& device) const {
  const int64_t by_shared = device.multiprocessor_shared_memory() / (shared_bytes + kReservedSharedMemory);
  const int64_t by_registers = kRegisters / (threads * round_up(registers_taken, kRegisterUnit));
  return std::min({by_shared, by_registers, device.max_threads / threads});
}

}  // namespace hstujit::gemm_sm80
