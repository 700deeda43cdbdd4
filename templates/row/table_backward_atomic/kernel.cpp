// Host side of kernel.cuh.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/support/integers.h"
#include "templates/common/sm90/machine.h"
#include "templates/row/cost.h"
#include "templates/row/operands.h"
#include "templates/row/skeleton.h"
#include "templates/row/table_backward_atomic/resources.h"

namespace hstujit {

namespace {

using row_table_backward_atomic::kBulkBytes;
using row_table_backward_atomic::kMinStages;
using row_table_backward_atomic::kWarp;
using row_table_backward_atomic::Resources;

constexpr int64_t kMinCapability = 90;  // has bulk copies, and additions of four values in memory
constexpr int64_t kMaxThreads = 512;    // of consumer warps
constexpr int64_t kMaxElements = 32;    // of a row of a thread
constexpr int64_t kRoundBlocks = 4;     // of a multiprocessor
constexpr int64_t kBlocksPerSm[] = {3, 4, 2, 6, 1, 8};

std::vector<RowOperand> sums_of(const RowSpec& spec) {
  return spec.interface(Direction::kBackward).outputs_of(RowOperandKind::kTableSum);
}

struct RowTableBackwardAtomic {
  using Spec = RowSpec;
  using Config = RowConfig;
  static constexpr std::string_view kName = "row/table_backward_atomic";
  static constexpr Direction kDirection = Direction::kBackward;

  static bool serves(const Spec& spec) {
    const std::vector<RowOperand> sums = sums_of(spec);
    return !sums.empty() && !row::finds_in_order(sums);
  }
  static std::vector<Config> space(const Spec& spec) {
    std::vector<Config> configs;
    Config config;
    config.stages = 1;
    config.activation = spec.dtype() == DataType::kFp32 ? "accurate" : "mufu";
    for (config.threads_per_row = 1; config.threads_per_row <= kMaxThreads; config.threads_per_row *= 2) {
      for (const int64_t rows : {1, 2, 4}) {
        config.warps = rows * config.threads_per_row / kWarp;
        for (const int64_t blocks_per_sm : kBlocksPerSm) {
          config.blocks_per_sm = blocks_per_sm;
          configs.push_back(config);
        }
      }
    }
    return configs;
  }
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
    std::vector<Rejection> reasons;
    if (device.capability() < kMinCapability)
      reasons.push_back(
          {"arch", fmt::format("{} adds single values in memory; sm_{} four at a time", device.arch, kMinCapability)});
    if (!std::has_single_bit(static_cast<uint64_t>(config.threads_per_row)) ||
        !std::has_single_bit(static_cast<uint64_t>(config.warps)) || config.threads_per_row > kWarp * config.warps ||
        kWarp * config.warps > kMaxThreads) {
      reasons.push_back({"threads_per_row",
                         fmt::format("{} threads a row of {} warps: both are powers of two, and a CTA has at most {} "
                                     "threads, of one row at least",
                                     config.threads_per_row, config.warps, kMaxThreads)});
      return reasons;
    }
    if (spec.elements_together() * static_cast<int64_t>(size_of(spec.dtype())) % kBulkBytes != 0) {
      reasons.push_back({"alignment", fmt::format("rows of {} elements are not copied {} bytes at a time",
                                                  spec.interface(kDirection).width, kBulkBytes)});
      return reasons;
    }
    if (config.schedule != "persistent" || config.stages != 1)
      reasons.push_back({"schedule", "CTAs are resident, and take turns with tiles of rows"});
    const Resources resources(spec, config);
    const auto vectors = static_cast<uint64_t>(spec.interface(kDirection).width / resources.vector);
    if (config.threads_per_row > static_cast<int64_t>(std::bit_ceil(vectors)))
      reasons.push_back(
          {"idle_threads", fmt::format("{} threads share a row of {} accesses", config.threads_per_row, vectors)});
    if (resources.elements > kMaxElements)
      reasons.push_back({"elements", fmt::format("a thread has {} elements of a row; at most {} stay in registers",
                                                 resources.elements, kMaxElements)});
    const int64_t threads = resources.threads * config.blocks_per_sm;
    if (threads > device.max_threads)
      reasons.push_back({"threads", fmt::format("{} threads of {} CTAs; a multiprocessor has {}", threads,
                                                config.blocks_per_sm, device.max_threads)});
    if (resources.stages < kMinStages ||
        config.blocks_per_sm * (resources.shared_bytes + kReservedSharedMemory) > device.multiprocessor_shared_memory())
      reasons.push_back({"shared_memory", fmt::format("{} CTAs with {} tiles of {} bytes at least",
                                                      config.blocks_per_sm, kMinStages, resources.stage_bytes)});
    const int64_t cap = sm90::even_registers(resources.threads, config.blocks_per_sm);
    if (resources.registers > cap)
      reasons.push_back(
          {"registers", fmt::format("a thread needs about {} registers and gets {}", resources.registers, cap)});
    return reasons;
  }
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
    const Resources resources(spec, config);
    const std::vector<RowOperand> sums = sums_of(spec);
    const Signature signature = spec.signature(kDirection);
    const int64_t width = spec.interface(kDirection).width;
    LaunchPlan plan;
    plan.kernel_name =
        fmt::format("{}_{}_{}_d{}_t{}_w{}_b{}_atomic", spec.op(), to_string(kDirection), to_string(spec.dtype()), width,
                    config.threads_per_row, config.warps, config.blocks_per_sm);
    plan.threads = static_cast<int>(resources.threads);
    plan.resident_blocks = static_cast<int>(config.blocks_per_sm);
    plan.shared_memory = resources.shared_bytes;
    plan.slots = row::operand_slots(spec, kDirection);
    plan.grid = {constant_factor(device.sm_count * config.blocks_per_sm)};
    add_workspace_region("part_count", "u32*", {{constant_factor(4)}, true}, plan);
    for (size_t table = 0; table < sums.size(); ++table) {
      const int argument = find_argument(signature, sums[table].argument());
      add_workspace_region(fmt::format("table_sums_{}", table), "float*",
                           {{size_factor(argument), constant_factor(width * 4)}, true}, plan);
    }
    FollowingKernel round;
    round.function = "round_sums";
    round.kernel_name = fmt::format("{}_{}", plan.kernel_name, round.function);
    round.threads = static_cast<int>(resources.consumers);
    round.grid = {constant_factor(device.sm_count * kRoundBlocks)};
    plan.following = {round};
    return plan;
  }
  static bool deterministic(const Config&) { return false; }
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize&) {
    return row::estimate_atomic_table_sums_ms(spec, config, Resources(spec, config).elements, device);
  }
  static Constants constants(const Spec& spec, const Config& config) {
    const Resources resources(spec, config);
    return {{"vector", resources.vector},
            {"hold_row", 1},
            {"hold_vectors", 0},
            {"slots", resources.slots},
            {"rows_ahead", resources.rows_ahead},
            {"recent_rows", resources.recent_rows},
            {"tiles_at_once", resources.tiles_at_once},
            {"pipeline_stages", resources.stages},
            {"shared_bytes", resources.shared_bytes}};
  }
  static std::string instruction_wrappers(const Spec& spec, const Config&) {
    return row::print_operands(spec, kDirection) + print_totals(sums_of(spec).size());
  }

 private:
  // Where the sums of all CTAs come together.
  static std::string print_totals(size_t tables) {
    std::string text = fmt::format(
        "\n"
        "struct Totals {{\n"
        "  template <class Params>\n"
        "  static __device__ __forceinline__ void rows(const Params& params, float* (&data)[{}]) {{\n",
        tables);
    for (size_t i = 0; i < tables; ++i) text += fmt::format("    data[{0}] = params.table_sums_{0};\n", i);
    return text + "  }\n};\n";
  }
};

}  // namespace

const Skeleton& row_table_backward_atomic_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<RowTableBackwardAtomic>;
  return skeleton;
}

const SkeletonSource& row_table_backward_atomic_source() {
  static const TypedSource<RowTableBackwardAtomic> source;
  return source;
}

}  // namespace hstujit
