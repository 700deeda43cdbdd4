// Host side of kernel.cuh.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/support/integers.h"
#include "templates/row/cost.h"
#include "templates/row/operands.h"
#include "templates/row/skeleton.h"

namespace hstujit {

namespace {

constexpr int64_t kMinCapability = 90;  // has additions of four values in memory
constexpr int64_t kMaxVector = 4;       // values of such an addition
constexpr int64_t kWarp = 32;
constexpr int64_t kMaxElements = 32;  // of a thread
constexpr int64_t kRegisters = 65536, kMaxRegisters = 255;
constexpr int64_t kBaseRegisters = 52;
constexpr int64_t kMaxStaticShared = 46 << 10;  // of a CTA, but for keys
constexpr int64_t kMaxSlots = 8;                // unless a warp has more groups
constexpr int64_t kWordsAhead = 32;             // of rows on their way
constexpr int64_t kTileSequences = 16;          // at most 32
constexpr int64_t kBlocksPerSm[] = {8, 6, 4, 3, 2, 1, 12, 16};

std::vector<RowOperand> sums_of(const RowSpec& spec) {
  return spec.interface(Direction::kBackward).outputs_of(RowOperandKind::kTableSum);
}

// What a thread and a CTA have of a row and of sums.
struct Shape {
  Shape(const RowSpec& spec, const RowConfig& config);
  int64_t slot_bytes() const { return groups * slots * width * 4; }

  int64_t width, vector, threads, groups, elements;
  int64_t slots, rows_ahead, registers;
};

Shape::Shape(const RowSpec& spec, const RowConfig& config)
    : width(spec.interface(Direction::kBackward).width),
      vector(std::min(kMaxVector, spec.elements_together())),
      threads(kWarp * config.warps),
      groups(threads / config.threads_per_row),
      elements(ceil_div(width / vector, config.threads_per_row) * vector) {
  const RowInterface& interface = spec.interface(Direction::kBackward);
  const auto count = [](const std::vector<RowOperand>& operands, RowOperandKind kind) {
    return std::count_if(operands.begin(), operands.end(), [&](const RowOperand& one) { return one.kind == kind; });
  };
  const int64_t row_bytes = elements * static_cast<int64_t>(size_of(spec.dtype()));
  const int64_t words = std::max<int64_t>(1, count(interface.inputs, RowOperandKind::kRow) * row_bytes / 4);
  slots = std::max(kMaxSlots, groups);
  while (slots > 1 && slot_bytes() > kMaxStaticShared) slots /= 2;
  rows_ahead = std::clamp(std::min(kWordsAhead / words, slots), int64_t{1}, kMaxSlots);
  // The last two rows of each table but the first, what a row adds, and the slot that it adds to.
  const int64_t tables = count(interface.outputs, RowOperandKind::kTableSum);
  registers = kBaseRegisters + rows_ahead * words + 2 * tables * elements;
}

GridFactor any_rows(int argument) { return size_factor(argument, int64_t{1} << 62); }  // 1, or 0 without rows

struct RowTableBackwardAtomic {
  using Spec = RowSpec;
  using Config = RowConfig;
  static constexpr std::string_view kName = "row/table_backward_atomic";
  static constexpr Direction kDirection = Direction::kBackward;

  static std::vector<Config> space(const Spec& spec) {
    std::vector<Config> configs;
    if (!serves(spec)) return configs;
    Config config;
    config.stages = 1;
    config.activation = spec.dtype() == DataType::kFp32 ? "accurate" : "mufu";
    for (config.threads_per_row = 1; config.threads_per_row <= kWarp * Config::kMaxWarps; config.threads_per_row *= 2) {
      config.warps = std::max(int64_t{1}, config.threads_per_row / kWarp);
      for (const int64_t blocks_per_sm : kBlocksPerSm) {
        config.blocks_per_sm = blocks_per_sm;
        configs.push_back(config);
      }
    }
    return configs;
  }
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
    if (!serves(spec)) return {{"operator", fmt::format("{} has no sums of tables that want a sort", spec.op())}};
    std::vector<Rejection> reasons;
    if (device.capability() < kMinCapability)
      reasons.push_back(
          {"arch", fmt::format("{} adds single values in memory; sm_{} four at a time", device.arch, kMinCapability)});
    if (!std::has_single_bit(static_cast<uint64_t>(config.threads_per_row)) ||
        config.warps != std::max(int64_t{1}, config.threads_per_row / kWarp)) {
      reasons.push_back({"threads_per_row", fmt::format("{} threads a row of {} warps: a power of two, and a CTA is a "
                                                        "warp or the warps of a row",
                                                        config.threads_per_row, config.warps)});
      return reasons;
    }
    if (config.schedule != "persistent" || config.stages != 1)
      reasons.push_back({"schedule", "rows are gone through in tiles, with loads of several ahead"});
    const Shape shape(spec, config);
    const auto vectors = static_cast<uint64_t>(shape.width / shape.vector);
    if (config.threads_per_row > static_cast<int64_t>(std::bit_ceil(vectors)))
      reasons.push_back(
          {"idle_threads", fmt::format("{} threads share a row of {} accesses", config.threads_per_row, vectors)});
    if (shape.elements > kMaxElements)
      reasons.push_back({"elements", fmt::format("a thread has {} elements of a row; at most {} stay in registers",
                                                 shape.elements, kMaxElements)});
    if (shape.threads * config.blocks_per_sm > device.max_threads)
      reasons.push_back({"threads", fmt::format("{} CTAs of {} threads; a multiprocessor has {}", config.blocks_per_sm,
                                                shape.threads, device.max_threads)});
    const int64_t shared = shape.slot_bytes();
    if (shared > kMaxStaticShared || config.blocks_per_sm * (shared + 2048) > device.shared_memory)
      reasons.push_back(
          {"shared_memory", fmt::format("{} CTAs with {} bytes of sums each", config.blocks_per_sm, shared)});
    const int64_t cap =
        std::min(kMaxRegisters, round_down(kRegisters / (shape.threads * config.blocks_per_sm), int64_t{8}));
    if (shape.registers > cap)
      reasons.push_back(
          {"registers", fmt::format("a thread needs about {} registers and gets {}", shape.registers, cap)});
    return reasons;
  }
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
    const Shape shape(spec, config);
    const std::vector<RowOperand> sums = sums_of(spec);
    const Signature signature = spec.signature(kDirection);
    const int64_t blocks = device.sm_count * config.blocks_per_sm;
    LaunchPlan plan;
    plan.kernel_name =
        fmt::format("{}_{}_{}_d{}_t{}_w{}_b{}_atomic", spec.op(), to_string(kDirection), to_string(spec.dtype()),
                    shape.width, config.threads_per_row, config.warps, config.blocks_per_sm);
    plan.threads = static_cast<int>(shape.threads);
    plan.slots = row::operand_slots(spec, kDirection);
    const int rows = plan.slots.back().argument;
    plan.grid = {constant_factor(blocks)};
    add_workspace_region("unit_count", "u32*", {{constant_factor(4)}, false}, plan);
    if (need_rounding(sums)) {
      for (size_t table = 0; table < sums.size(); ++table) {
        const int argument = find_argument(signature, sums[table].argument());
        add_workspace_region(fmt::format("table_sums_{}", table), "float*",
                             {{size_factor(argument), constant_factor(shape.width * 4)}, false}, plan);
      }
    }
    const auto add_kernel = [&](const char* function, std::vector<GridFactor> grid, int64_t resident_blocks) {
      FollowingKernel kernel;
      kernel.kernel_name = fmt::format("{}_{}", plan.kernel_name, function);
      kernel.function = function;
      kernel.threads = plan.threads;
      kernel.grid = std::move(grid);
      kernel.resident_blocks = static_cast<int>(resident_blocks);
      plan.following.push_back(std::move(kernel));
    };
    add_kernel("add_tiles", {any_rows(rows), constant_factor(blocks)}, config.blocks_per_sm);
    if (need_rounding(sums)) add_kernel("round_sums", {constant_factor(blocks)}, 0);
    return plan;
  }
  static bool deterministic(const Config&) { return false; }
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize&) {
    return row::estimate_atomic_table_sums_ms(spec, config, Shape(spec, config).elements, device);
  }
  static Constants constants(const Spec& spec, const Config& config) {
    const Shape shape(spec, config);
    return {{"vector", shape.vector},         {"hold_row", 1},        {"hold_vectors", 0},
            {"rows_ahead", shape.rows_ahead}, {"slots", shape.slots}, {"tile_sequences", kTileSequences}};
  }
  static std::string instruction_wrappers(const Spec& spec, const Config&) {
    return row::print_operands(spec, kDirection) + print_totals(sums_of(spec), spec.interface(kDirection).width);
  }

 private:
  static bool serves(const Spec& spec) {
    const std::vector<RowOperand> sums = sums_of(spec);
    return !sums.empty() && !row::finds_in_order(sums);
  }
  static bool need_rounding(const std::vector<RowOperand>& sums) { return sums.front().dtype != DataType::kFp32; }

  // Where the sums of all CTAs come together.
  static std::string print_totals(const std::vector<RowOperand>& sums, int64_t width) {
    std::string text = fmt::format(
        "\n"
        "struct Totals {{\n"
        "  template <class Params>\n"
        "  static __device__ __forceinline__ void rows(const Params& params, float* (&data)[{0}], i64 (&strides)[{0}]) "
        "{{\n",
        sums.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      const std::string& table = sums[i].argument();
      text += need_rounding(sums)
                  ? fmt::format("    data[{0}] = params.table_sums_{0};\n    strides[{0}] = {1};\n", i, width)
                  : fmt::format("    data[{0}] = params.{1};\n    strides[{0}] = params.{1}_stride;\n", i, table);
    }
    return text + "  }\n};\n";
  }
};

}  // namespace

const Skeleton& row_table_backward_atomic_skeleton() {
  static const TypedSkeleton<RowTableBackwardAtomic> skeleton;
  return skeleton;
}

}  // namespace hstujit
