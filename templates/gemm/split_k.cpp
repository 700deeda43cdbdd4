#include "templates/gemm/split_k.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/integers.h"

namespace hstujit::gemm {

namespace {

constexpr int64_t kMaxSplits = 132;
constexpr int kAddThreads = 256;     // of the kernel that adds up parts of sums
constexpr int64_t kAddElements = 8;  // of a thread of it, all of one row: as in split_k.cuh
constexpr int64_t kPair = 2;         // sums of columns that are stored together: as in column_sums.cuh

}  // namespace

std::vector<int64_t> splits_of(const GemmInterface& gemm, int64_t rows, int64_t columns, int64_t ctas) {
  std::vector<int64_t> splits = {1};
  if (!gemm.sums_rows() || gemm.per_sequence()) return splits;
  const int64_t tiles = ceil_div(gemm.m, rows) * ceil_div(gemm.n, columns);
  for (const int64_t rounds : {1, 2, 3, 4}) {
    const int64_t split = std::min(kMaxSplits, rounds * ctas / tiles);
    if (split > splits.back()) splits.push_back(split);
  }
  return splits;
}

void reject_parts(const GemmSpec& spec, const GemmConfig& config, std::vector<Rejection>& reasons) {
  const GemmInterface& gemm = spec.interface();
  if (config.split_k == 1 || (gemm.sums_rows() && !gemm.per_sequence())) return;
  const std::string sum = gemm.per_sequence() ? "of each sequence" : fmt::format("of {} terms", gemm.k);
  reasons.push_back(
      {"split_k", fmt::format("split_k {} of a sum {}; allowed: 1, or sums over all rows", config.split_k, sum)});
}

void add_parts(const GemmSpec& spec, const GemmConfig& config, const DeviceSpec& device, LaunchPlan& plan) {
  if (config.split_k == 1) return;
  const int64_t columns = round_up(spec.interface().n, kAddElements);
  const int out = find_argument(spec.signature(Direction::kForward), "out");
  const int64_t row_bytes = config.split_k * columns * static_cast<int64_t>(sizeof(float));
  add_workspace_region("partials", "float*", {{size_factor(out), constant_factor(row_bytes)}, false}, plan);
  if (spec.interface().column_sums) {
    const int64_t sums = config.split_k * round_up(spec.interface().summed_columns(), kPair);
    const int64_t bytes = sums * static_cast<int64_t>(sizeof(float));
    add_workspace_region("column_partials", "float*", {{constant_factor(bytes)}, false}, plan);
  }
  FollowingKernel add;
  add.function = "add_partials";
  add.kernel_name = fmt::format("{}_{}", plan.kernel_name, add.function);
  add.threads = kAddThreads;
  add.grid = {size_factor(out), constant_factor(ceil_div(columns, kAddThreads * kAddElements))};
  add.max_blocks = 8 * device.sm_count;
  plan.following = {add};
}

std::string print_split_k(const GemmConfig& config) {
  if (config.split_k == 1) return {};
  return fmt::format(
      "\n"
      "// CTAs share the sum of a tile.\n"
      "struct SplitK {{\n"
      "  static constexpr int kParts = {};\n"
      "}};\n",
      config.split_k);
}

}  // namespace hstujit::gemm
