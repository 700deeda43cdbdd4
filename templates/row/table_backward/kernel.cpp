// Host side of kernel.cuh.
#include <fmt/format.h>

#include "compiler/support/integers.h"
#include "templates/row/cost.h"
#include "templates/row/operands.h"
#include "templates/row/resources.h"
#include "templates/row/runs.h"
#include "templates/row/skeleton.h"

namespace hstujit {

namespace {

// As KeySort of keys.cuh.
constexpr int kSortThreads = 128;
constexpr int kKeyThreads = 512;
constexpr int64_t kMinRows = 512, kMaxChunks = 256, kDigits = 2048;
constexpr int kSumThreads = 1024;
constexpr int64_t kDigitsOfGroup = 32;
constexpr int64_t kAnyRows = int64_t{1} << 62;  // a divisor that makes 1 of any number of rows but 0

// The plan of all kernels, put together in the order in which they run.
class Planner {
 public:
  Planner(const RowSpec& spec, const RowConfig& config, const DeviceSpec& device)
      : signature_(spec.signature(Direction::kBackward)),
        sums_(spec.interface(Direction::kBackward).outputs_of(RowOperandKind::kTableSum)),
        resources_(spec, Direction::kBackward, config),
        blocks_per_sm_(config.blocks_per_sm),
        blocks_(device.sm_count * config.blocks_per_sm),
        width_(spec.interface(Direction::kBackward).width) {
    plan_.kernel_name =
        fmt::format("{}_{}_{}_d{}_t{}_w{}_b{}", spec.op(), to_string(Direction::kBackward), to_string(spec.dtype()),
                    width_, config.threads_per_row, config.warps, config.blocks_per_sm);
    plan_.threads = kKeyThreads;
    plan_.slots = row::operand_slots(spec, Direction::kBackward);
    rows_ = plan_.slots.back().argument;
    plan_.grid = {size_factor(rows_, kMinRows)};
    plan_.persistent_blocks = kMaxChunks;
  }

  LaunchPlan plan() {
    const auto tables = static_cast<int64_t>(sums_.size());
    const bool sorted = row::finds_in_order(sums_);
    add_region("keys", "u32*", {size_factor(rows_, 1), constant_factor(tables * 4)});
    if (!sorted) {
      add_region("order_a", "u32*", {size_factor(rows_, 1), constant_factor(tables * 4)});
      add_region("order_b", "u32*", {size_factor(rows_, 1), constant_factor(tables * 4)});
      add_region("histograms", "u32*", {constant_factor(tables * (kMaxChunks + 1) * kDigits * 4)});
    }
    row::add_run_regions(blocks_, resources_.rows, width_, plan_);

    const int threads = static_cast<int>(resources_.threads);
    add_kernel("clear_tables", threads, {constant_factor(blocks_)});
    if (!sorted) {
      add_pass("", constant_factor(tables));
      // Where the number of rows, and what stands for none and for no row, are more than one digit has.
      for (int64_t table = 0; table < tables; ++table) {
        const int argument = find_argument(signature_, sums_[static_cast<size_t>(table)].argument());
        add_pass(fmt::format("_{}", table), size_factor(argument, kAnyRows, 2 - kDigits));
      }
    }
    for (int64_t table = 0; table < tables; ++table) {
      const GridFactor any = size_factor(rows_, kAnyRows);
      add_kernel(fmt::format("walk_table_{}", table), threads, {any, constant_factor(blocks_)}, 0,
                 static_cast<int>(blocks_per_sm_));
      add_kernel(fmt::format("finish_table_{}", table), row::kFinishThreads,
                 {any, constant_factor(row::finish_blocks(blocks_, width_))});
    }
    return plan_;
  }

 private:
  void add_region(const char* name, const char* type, std::vector<GridFactor> bytes) {
    add_workspace_region(name, type, {std::move(bytes), false}, plan_);
  }

  void add_kernel(std::string function, int threads, std::vector<GridFactor> grid, int64_t max_blocks = 0,
                  int resident_blocks = 0) {
    FollowingKernel kernel;
    kernel.kernel_name = fmt::format("{}_{}", plan_.kernel_name, function);
    kernel.function = std::move(function);
    kernel.threads = threads;
    kernel.grid = std::move(grid);
    kernel.max_blocks = max_blocks;
    kernel.resident_blocks = resident_blocks;
    plan_.following.push_back(std::move(kernel));
  }

  // Adds a pass of a sort: count, which the main kernel has done for the first, sum up, put in order. `times` is a
  // further factor of the grids: the tables that the pass is over, or whether there is one.
  void add_pass(const std::string& suffix, const GridFactor& times) {
    const std::vector<GridFactor> chunks = {size_factor(rows_, kMinRows), times};
    const int64_t max_blocks = kMaxChunks * (times.source == GridFactor::Source::kConstant ? times.constant : 1);
    if (!suffix.empty()) add_kernel("count_rows" + suffix, kSortThreads, chunks, max_blocks);
    add_kernel("sum_counts" + suffix, kSumThreads,
               {size_factor(rows_, kAnyRows), constant_factor(kDigits / kDigitsOfGroup), times});
    add_kernel("order_rows" + suffix, kSortThreads, chunks, max_blocks);
  }

  const Signature signature_;
  const std::vector<RowOperand> sums_;
  const row::Resources resources_;
  const int64_t blocks_per_sm_, blocks_, width_;
  int rows_ = 0;
  LaunchPlan plan_;
};

struct RowTableBackward {
  using Spec = RowSpec;
  using Config = RowConfig;
  static constexpr std::string_view kName = "row/table_backward";
  static constexpr Direction kDirection = Direction::kBackward;

  static bool serves(const Spec& spec) { return row::has_table_sums(spec); }
  static std::vector<Config> space(const Spec& spec) { return row::space(spec, kDirection); }
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
    std::vector<Rejection> reasons = row::reject(spec, kDirection, config, device);
    if (config.schedule != "persistent" || config.stages != 1)
      reasons.push_back({"schedule", "rows are gone through in order, with loads of several ahead"});
    if (reasons.empty() && !row::Resources(spec, kDirection, config).hold_row)
      reasons.push_back({"elements", "a row that is added to a sum stays in registers"});
    return reasons;
  }
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
    return Planner(spec, config, device).plan();
  }
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize&) {
    return row::estimate_table_sums_ms(spec, config, device);
  }
  static Constants constants(const Spec& spec, const Config& config) {
    const row::Resources resources(spec, kDirection, config);
    return {{"vector", resources.vector}, {"hold_row", 1}, {"hold_vectors", 0}, {"rows_ahead", resources.rows_ahead}};
  }
  static std::string instruction_wrappers(const Spec& spec, const Config&) {
    return row::print_operands(spec, kDirection);
  }
};

}  // namespace

const Skeleton& row_table_backward_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<RowTableBackward>;
  return skeleton;
}

const SkeletonSource& row_table_backward_source() {
  static const TypedSource<RowTableBackward> source;
  return source;
}

}  // namespace hstujit
