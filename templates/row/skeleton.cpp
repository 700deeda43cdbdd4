#include "templates/row/skeleton.h"

#include <fmt/format.h>

#include <bit>

#include "compiler/support/integers.h"
#include "compiler/support/text.h"
#include "templates/row/operands.h"
#include "templates/row/resources.h"

namespace hstujit::row {

namespace {

constexpr int64_t kMaxThreads = 1024;  // of a CTA
constexpr int64_t kMaxElements = 64;   // of a thread: loops over them are unrolled
constexpr int64_t kMinCapability = 80;
constexpr int64_t kBulkCapability = 90;
constexpr int64_t kBulkBytes = 16;
constexpr int64_t kFewThreads = 1024;  // that may be resident on any multiprocessor
constexpr double kRoom = 1.25;         // times the registers that a kernel is expected to take: it gets all it wants

// As in column_sums.cuh and group_sums.cuh.
constexpr int64_t kAddColumns = 32;
constexpr int kAddThreads = 512;
constexpr int64_t kMaxExchanged = 1024;  // parts of all warps, whose sums are exchanged in shared memory

bool well_formed(const RowConfig& config) {
  return std::has_single_bit(static_cast<uint64_t>(config.threads_per_row)) &&
         32 * config.warps % config.threads_per_row == 0;
}

bool has_sums(const RowInterface& interface) {
  return count_of(interface.outputs, RowOperandKind::kColumnSum) +
             count_of(interface.outputs, RowOperandKind::kGroupSum) >
         0;
}

// Numbers that each CTA leaves in a region of its own, and the kernel that adds them up.
void add_sums(const char* region, int64_t numbers, const char* function, int64_t blocks, LaunchPlan& plan) {
  if (numbers == 0) return;
  const int64_t bytes = numbers * static_cast<int64_t>(sizeof(float));
  add_workspace_region(region, "float*", {{constant_factor(plan.persistent_blocks), constant_factor(bytes)}, false},
                       plan);
  FollowingKernel kernel;
  kernel.kernel_name = fmt::format("{}_{}", plan.kernel_name, function);
  kernel.function = function;
  kernel.threads = kAddThreads;
  kernel.grid = {constant_factor(blocks)};
  plan.following.push_back(kernel);
}

void add_row_sums(const RowInterface& interface, const Resources& resources, LaunchPlan& plan) {
  const int64_t columns = count_of(interface.outputs, RowOperandKind::kColumnSum) * interface.width;
  const int64_t groups = count_of(interface.outputs, RowOperandKind::kGroupSum);
  add_sums("partials", columns, "add_column_sums", ceil_div(columns, kAddColumns), plan);
  add_sums("group_partials", groups * resources.vectors, "add_group_sums", groups * interface.groups, plan);
  if (plan.following.empty()) return;
  add_workspace_region("partial_count", "int*", {{constant_factor(static_cast<int64_t>(sizeof(int32_t)))}, false},
                       plan);
}

// A CTA of a grid gets all registers that it wants. Compiled for fewer CTAs it would be the same machine code, and as
// many would be resident.
bool has_room(const RowSpec& spec, Direction direction, const RowConfig& config) {
  if (!well_formed(config) || 32 * config.warps * config.blocks_per_sm > kFewThreads) return false;
  const Resources resources(spec, direction, config);
  return resources.hold_row &&
         static_cast<double>(resources.register_cap) >= kRoom * static_cast<double>(resources.registers_taken);
}

}  // namespace

std::vector<RowConfig> space(const RowSpec& spec, Direction direction) {
  std::vector<RowConfig> configs;
  RowConfig config;
  config.activation = spec.dtype() == DataType::kFp32 ? "accurate" : "mufu";
  for (config.threads_per_row = 1; config.threads_per_row <= kMaxThreads; config.threads_per_row *= 2) {
    for (const int64_t warps : {4, 8, 16, 32}) {
      config.warps = warps;
      // The first of equal estimates counts. CTAs of a grid are resident as registers allow: the fewer the better.
      for (const int64_t blocks_per_sm : {16, 12, 8, 6, 4, 3, 2, 1}) {
        config.blocks_per_sm = blocks_per_sm;
        config.schedule = "grid";
        config.stages = 1;
        configs.push_back(config);
        if (has_room(spec, direction, config)) break;
      }
      config.schedule = "persistent";
      for (const int64_t stages : {2, 1, 3, 5}) {
        config.stages = stages;
        for (const int64_t blocks_per_sm : {1, 2, 3, 4, 5, 6, 8}) {
          config.blocks_per_sm = blocks_per_sm;
          configs.push_back(config);
        }
      }
    }
  }
  return configs;
}

namespace {

// Static shared memory, at most: of ColumnSums, for columns and for groups; of a reducer for each number of sums that a
// round may have; of RunSums.
int64_t static_bytes(const RowInterface& interface, const RowConfig& config, const Resources& resources) {
  constexpr int64_t kReducers = 3, kMaxSums = 4, kBuffers = 2, kRunBytes = 512;
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  int64_t bytes = kRunBytes;
  if (count_of(interface.outputs, RowOperandKind::kColumnSum) > 0)
    bytes += resources.threads * resources.vector * kFloat;
  if (count_of(interface.outputs, RowOperandKind::kGroupSum) > 0) bytes += resources.threads * kFloat;
  if (config.threads_per_row > 32) bytes += kReducers * kBuffers * config.warps * resources.parts * kMaxSums * kFloat;
  return bytes;
}

// Rows that wait in shared memory.
void reject_ring(const RowSpec& spec, Direction direction, const RowConfig& config, const Resources& resources,
                 const DeviceSpec& device, std::vector<Rejection>& reasons) {
  if (device.capability() < kBulkCapability)
    reasons.push_back({"arch", fmt::format("{} has no bulk copies; sm_{} has", device.arch, kBulkCapability)});
  if (spec.interface(direction).sequences && spec.interface(direction).outputs_of(RowOperandKind::kTableSum).empty())
    reasons.push_back({"stages", "rows of sequences, of which some tensors have none, are not copied in bulk"});
  if (resources.vector * static_cast<int64_t>(size_of(spec.dtype())) % kBulkBytes != 0)
    reasons.push_back({"alignment", fmt::format("rows of {} elements are not copied {} bytes at a time",
                                                spec.interface(direction).width, kBulkBytes)});
  const int64_t block = resources.ring_bytes + static_bytes(spec.interface(direction), config, resources);
  const int64_t bytes = config.blocks_per_sm * (block + kReservedSharedMemory);
  if (bytes > device.multiprocessor_shared_memory())
    reasons.push_back(
        {"shared_memory", fmt::format("{} with {} bytes of rows on their way and of sums; a multiprocessor has {}",
                                      counted(config.blocks_per_sm, "CTA"), block, device.shared_memory)});
}

}  // namespace

std::vector<Rejection> reject(const RowSpec& spec, Direction direction, const RowConfig& config,
                              const DeviceSpec& device) {
  std::vector<Rejection> reasons;
  if (device.capability() < kMinCapability)
    reasons.push_back({"arch", fmt::format("{} is older than sm_{}", device.arch, kMinCapability)});
  if (!well_formed(config)) {
    reasons.push_back({"threads_per_row", fmt::format("{} threads a row of {} warps: a power of two that divides them",
                                                      config.threads_per_row, config.warps)});
    return reasons;
  }
  if (!is_persistent(config) && config.stages > 1)
    reasons.push_back({"schedule", "a CTA of a grid has one group of rows, and none to load ahead"});
  if (!is_persistent(config) && has_sums(spec.interface(direction)))
    reasons.push_back({"schedule", "sums over rows want CTAs that have many of them"});
  const Resources resources(spec, direction, config);
  if (config.threads_per_row > static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(resources.vectors)))) {
    reasons.push_back({"idle_threads", fmt::format("{} threads share a row of {} accesses", config.threads_per_row,
                                                   resources.vectors)});
  }
  if (resources.chunks * resources.vector > kMaxElements) {
    reasons.push_back({"elements", fmt::format("a thread has {} elements of a row; at most {} are unrolled",
                                               resources.chunks * resources.vector, kMaxElements)});
  }
  if (resources.threads > kMaxThreads || resources.threads * config.blocks_per_sm > device.max_threads) {
    reasons.push_back(
        {"threads", fmt::format("{} of {} threads; a multiprocessor has {}", counted(config.blocks_per_sm, "CTA"),
                                resources.threads, device.max_threads)});
  }
  if (!is_persistent(config) && !resources.hold_row)
    reasons.push_back({"schedule", "a row that does not stay in registers is loaded again: CTAs that walk hide that"});
  const bool in_shared = config.stages > kRegisterStages && config.threads_per_row >= kWideThreads;
  if (config.stages > 1 && !resources.hold_row && !in_shared) {
    reasons.push_back({"stages", fmt::format("a row that does not stay in registers is loaded ahead where at least {} "
                                             "threads share it, into shared memory",
                                             kWideThreads)});
  }
  if (config.stages > kRegisterStages) reject_ring(spec, direction, config, resources, device, reasons);
  if (resources.parts > 1 && config.threads_per_row > 32 && resources.parts * config.warps > kMaxExchanged) {
    reasons.push_back({"parts", fmt::format("{} warps exchange sums of {} parts of a row; at most {} in all",
                                            config.warps, resources.parts, kMaxExchanged)});
  }
  if (resources.registers_needed > resources.register_cap) {
    reasons.push_back({"registers", fmt::format("a thread needs about {} registers and gets {}",
                                                resources.registers_needed, resources.register_cap)});
  }
  return reasons;
}

LaunchPlan launch_plan(const RowSpec& spec, Direction direction, const RowConfig& config, const DeviceSpec& device) {
  const Resources resources(spec, direction, config);
  const RowInterface& interface = spec.interface(direction);
  LaunchPlan plan;
  plan.kernel_name =
      fmt::format("{}_{}_{}_d{}_t{}_w{}_s{}_b{}", spec.op(), to_string(direction), to_string(spec.dtype()),
                  interface.width, config.threads_per_row, config.warps, config.stages, config.blocks_per_sm);
  if (!is_persistent(config)) plan.kernel_name += "_grid";
  plan.threads = static_cast<int>(resources.threads);
  plan.resident_blocks = static_cast<int>(config.blocks_per_sm);
  plan.shared_memory = resources.ring_bytes;
  plan.slots = operand_slots(spec, direction);
  GridFactor rows;
  rows.source = GridFactor::Source::kSize;
  rows.argument = plan.slots.back().argument;
  rows.divisor = resources.rows;
  plan.grid = {rows};
  if (is_persistent(config)) plan.persistent_blocks = device.sm_count * config.blocks_per_sm;
  add_row_sums(interface, resources, plan);
  return plan;
}

Constants constants(const RowSpec& spec, Direction direction, const RowConfig& config) {
  const Resources resources(spec, direction, config);
  return {{"vector", resources.vector},
          {"hold_row", resources.hold_row ? 1 : 0},
          {"hold_vectors", resources.hold_vectors ? 1 : 0}};
}

std::string instruction_wrappers(const RowSpec& spec, Direction direction, const RowConfig& config) {
  std::string text = print_operands(spec, direction);
  if (const int64_t bytes = Resources(spec, direction, config).ring_bytes; bytes > 0) {
    text += fmt::format(
        "\n// Shared memory of the rows on their way.\nstruct Ring {{\n  static constexpr int kBytes = {};\n}};\n",
        bytes);
  }
  return text;
}

}  // namespace hstujit::row
