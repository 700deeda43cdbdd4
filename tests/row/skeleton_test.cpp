// Host side of templates/row/: every problem has a config on every device, and figures add up.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/plan/search_space.h"
#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"
#include "compiler/spec/operators/layer_norm/spec.h"
#include "templates/row/operands.h"
#include "templates/row/resources.h"
#include "tests/paths.h"
#include "tests/row/row_cases.h"
#include "tests/share.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackward};

LayerNormSpec make_spec(int64_t width, DataType dtype, int64_t alignment = 16, bool vectors = true) {
  LayerNormParams params;
  params.width = width;
  params.dtype = dtype;
  params.alignment = std::max<int64_t>(alignment, static_cast<int64_t>(size_of(dtype)));
  params.weight = params.bias = vectors;
  make_canonical(params, vectors);
  return LayerNormSpec(params);
}

// An operator without cases is compared with its reference nowhere.
TEST(RowOperators, EachHasCasesAndItsRowInTheTables) {
  const auto text_of = [](const std::string& file) {
    std::ifstream stream(source_path("/") + file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  std::string ops;
  for (const auto& page : std::filesystem::directory_iterator(source_path("/docs"))) {
    const std::string name = page.path().filename();
    if (name.starts_with("ops-")) ops += text_of("docs/" + name);
  }
  const std::string pages[] = {"docs/ops.md", "docs/python.md", "docs/pytorch.md"};
  for (const std::string_view op : operator_names()) {
    const bool row = (*smallest_op_spec(op))->family() == Family::kRow;
    const std::string cases = fmt::format("{}/tests/operators/{}/cases.json", source_path(), op);
    EXPECT_TRUE(!row || std::filesystem::exists(cases)) << cases;
    EXPECT_NE(ops.find(fmt::format("\n## {}\n", op)), std::string::npos) << op << " has no section in docs/ops-*.md";
    for (const std::string& page : pages) {
      const std::string text = text_of(page);
      EXPECT_TRUE(text.find(fmt::format("`{}`", op)) != std::string::npos ||
                  text.find(fmt::format("[{}](", op)) != std::string::npos)
          << page << " does not have " << op;
    }
  }
}

// Instances of every operator of the family: as it is by default, with every flag on that goes with the others, and
// with every flag off.
std::vector<OpSpecPtr> every_operator(int64_t width, DataType dtype, int64_t alignment) {
  std::vector<OpSpecPtr> specs;
  for (const std::string_view op : operator_names()) {
    const OpSpecPtr smallest = *smallest_op_spec(op);
    if (smallest->family() != Family::kRow) continue;
    const nlohmann::ordered_json parameters = smallest->to_json();
    nlohmann::ordered_json json = parameters;
    json["width"] = width;
    json["dtype"] = to_string(dtype);
    json["alignment"] = std::max<int64_t>(alignment, static_cast<int64_t>(size_of(dtype)));
    specs.push_back(*parse_op_spec(json, "row"));
    for (const bool on : {true, false}) {
      for (const auto& [name, value] : parameters.items()) {
        if (!value.is_boolean()) continue;
        nlohmann::ordered_json changed = json;
        changed[name] = on;
        if (parse_op_spec(changed, "row").ok()) json = std::move(changed);
      }
      specs.push_back(*parse_op_spec(json, "row"));
    }
  }
  return specs;
}

const Skeleton& skeleton(Direction direction) {
  return **find_skeleton(direction == Direction::kForward ? "row/forward" : "row/backward");
}

std::vector<KernelConfig> accepted(const RowSpec& spec, Direction direction, const DeviceSpec& device) {
  std::vector<KernelConfig> configs;
  for (KernelConfig& config : skeleton(direction).space(spec)) {
    if (skeleton(direction).reject(spec, config, device).empty()) configs.push_back(std::move(config));
  }
  return configs;
}

// The devices on which no skeleton that serves the operator accepts a config.
std::vector<std::string> devices_without(const OpSpec& spec, Direction direction) {
  std::vector<DeviceSpec> devices;
  for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90a"}) devices.push_back(*known_device(name));
  for (const Skeleton* skeleton : skeletons()) {
    if (!skeleton->serves(spec, direction)) continue;
    const std::vector<KernelConfig> space = skeleton->space(spec);
    std::erase_if(devices, [&](const DeviceSpec& device) {
      // Begins with the config that was accepted last: most are rejected, each with a sentence.
      static std::map<std::pair<const Skeleton*, std::string>, size_t> accepted;
      size_t& at = accepted[{skeleton, device.name}];
      for (size_t i = 0; i < space.size(); ++i, ++at) {
        if (skeleton->reject(spec, space[at % space.size()], device).empty()) return true;
      }
      return false;
    });
  }
  std::vector<std::string> names;
  for (const DeviceSpec& device : devices) names.push_back(device.name);
  return names;
}

TEST(RowSkeleton, EveryProblemHasAConfigOnEveryDevice) {
  const std::vector<int64_t> widths = {1,
                                       2,
                                       3,
                                       7,
                                       8,
                                       9,
                                       16,
                                       31,
                                       33,
                                       64,
                                       65,
                                       100,
                                       512,
                                       1000,
                                       1024,
                                       4096,
                                       8191,
                                       12288,
                                       RowParams::kMaxWidth - 1,
                                       RowParams::kMaxWidth};
  std::set<std::string> seen;  // alignments that rows cannot have are all the same problem
  for (size_t i = 0; i < widths.size(); i += kSanitized ? 11 : 1) {
    const int64_t width = widths[i];
    for (const DataType dtype : {DataType::kBf16, DataType::kFp32}) {
      for (const int64_t alignment : {16, 4, 2}) {
        for (const OpSpecPtr& spec : every_operator(width, dtype, alignment)) {
          if (!seen.insert(spec->to_json().dump()).second) continue;
          for (const Direction direction : kDirections) {
            if (!spec->supports(direction) || spec->program(direction) != nullptr) continue;
            EXPECT_THAT(devices_without(*spec, direction), testing::IsEmpty())
                << to_string(direction) << " " << spec->to_json();
          }
        }
      }
    }
  }
}

// Groups of every shape, with all that an operator may have.
TEST(RowSkeleton, EveryGroupHasAConfigOnEveryDevice) {
  for (const auto& [width, heads] :
       {std::pair{1, 1}, {64, 64}, {21, 3}, {96, 3}, {1024, 4}, {8190, 63}, {16383, 3}, {16384, 1}, {16384, 64}}) {
    for (const DataType dtype : {DataType::kBf16, DataType::kFp32}) {
      HstuNormMulDropoutParams params;
      params.width = width;
      params.heads = heads;
      params.dtype = dtype;
      params.concat_u = params.concat_x = params.silu_u = params.dropout = true;
      for (const bool group_norm : {true, false}) {
        HstuNormMulDropoutParams chosen = params;
        chosen.group_norm = group_norm;
        chosen.mul_u_activation = "silu";
        chosen.make_canonical();
        make_canonical(chosen, true);
        const HstuNormMulDropoutSpec spec(chosen);
        for (const Direction direction : kDirections) {
          EXPECT_THAT(devices_without(spec, direction), testing::IsEmpty())
              << to_string(direction) << " " << spec.to_json();
        }
      }
    }
  }
}

// Sums of tables have a skeleton of their own.
TEST(RowSkeleton, EveryProblemOverSequencesHasAConfigOnEveryDevice) {
  const std::vector<int64_t> widths = {1, 7, 100, 512, RowParams::kMaxWidth};
  for (const std::string_view device : {"sm_80", "sm_90a", "sm_86", "sm_89"}) {
    if (kSanitized && device == "sm_86") break;  // which takes minutes otherwise
    // Shares out widths between the last two devices, which differ from the first in sizes alone.
    const bool all = device == "sm_80" || device == "sm_90a";
    for (const int64_t width : all ? widths : share_of(widths, device == "sm_86" ? 0 : 1, 2)) {
      if (kSanitized && width != 100) continue;
      for (const char* dtype : {"bf16", "fp32"}) {
        for (const RowCase& row : sequence_cases({{"width", width}, {"dtype", dtype}})) {
          for (const Direction direction : kDirections) {
            if (!row.spec->supports(direction) || row.spec->program(direction) != nullptr) continue;
            const auto tables = row.spec->interface(direction).outputs_of(RowOperandKind::kTableSum);
            const bool sums = !tables.empty(), sorted = row::finds_in_order(tables);
            for (const bool deterministic : {false, true}) {
              const auto config =
                  heuristic_config(*row.spec, direction, *known_device(device), {}, {.deterministic = deterministic});
              ASSERT_TRUE(config.ok()) << device << " " << row.name << " " << width << config.status().message();
              // Rows in pieces of 16 bytes, but for the widest ones: a CTA has not registers enough for its sums.
              const bool bulk =
                  device == "sm_90a" && width * static_cast<int64_t>(size_of(row.spec->dtype())) % 16 == 0;
              const bool atomic = bulk && !deterministic && !sorted && width < RowParams::kMaxWidth;
              EXPECT_EQ(config->skeleton, !sums            ? skeleton(direction).name()
                                          : bulk && sorted ? "row/segment_backward"
                                          : atomic         ? "row/table_backward_atomic"
                                                           : "row/table_backward")
                  << row.name << " " << width;
            }
          }
        }
      }
    }
  }
}

TEST(RowSkeleton, ServesTheFamilyInItsDirection) {
  const LayerNormSpec spec = make_spec(512, DataType::kBf16);
  for (const Direction direction : kDirections) {
    const auto config = heuristic_config(spec, direction, *known_device("sm_90a"), {});
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config->skeleton, skeleton(direction).name());
  }
}

TEST(RowSkeleton, EveryConfigHasAKernelNameOfItsOwn) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const Direction direction : kDirections) {
    const LayerNormSpec spec = make_spec(512, DataType::kBf16);
    std::set<std::string> names;
    const auto configs = accepted(spec, direction, device);
    for (const KernelConfig& config : configs)
      names.insert(skeleton(direction).launch_plan(spec, config, device).kernel_name);
    EXPECT_EQ(names.size(), configs.size());
  }
}

TEST(RowSkeleton, RejectsWhatItCannotDo) {
  const LayerNormSpec spec = make_spec(512, DataType::kBf16);
  const auto reasons = [&](const RowConfig& config, const char* device) {
    std::string text;
    for (const Rejection& rejection :
         skeleton(Direction::kBackward).reject(spec, {"row/backward", config}, *known_device(device)))
      text += (text.empty() ? "" : " ") + rejection.reason;
    return text;
  };
  EXPECT_EQ(reasons({32, 4, 2, 2}, "sm_90a"), "");
  EXPECT_EQ(reasons({24, 3, 2, 1}, "sm_90a"), "threads_per_row");
  EXPECT_EQ(reasons({256, 4, 2, 1}, "sm_90a"), "threads_per_row");
  EXPECT_EQ(reasons({128, 4, 2, 1}, "sm_90a"), "idle_threads");
  EXPECT_EQ(reasons({4, 4, 1, 1}, "sm_90a"), "elements registers");
  EXPECT_EQ(reasons({64, 32, 1, 3}, "sm_90a"), "threads registers");
}

// Parts of column sums have room for as many CTAs as are ever launched.
TEST(RowSkeleton, WorkspaceHoldsAPartOfEachCta) {
  const DeviceSpec device = *known_device("sm_90a");
  const LayerNormSpec spec = make_spec(512, DataType::kBf16);
  for (const KernelConfig& config : accepted(spec, Direction::kBackward, device)) {
    const LaunchPlan plan = skeleton(Direction::kBackward).launch_plan(spec, config, device);
    ASSERT_EQ(plan.workspace.regions.size(), 2);
    int64_t bytes = 1;
    for (const GridFactor& factor : plan.workspace.regions[0].bytes) bytes *= factor.constant;
    EXPECT_EQ(bytes, plan.persistent_blocks * 2 * 512 * 4);
    ASSERT_EQ(plan.following.size(), 1);
    EXPECT_EQ(plan.following[0].grid[0].constant, 2 * 512 / 32);
  }
  const LayerNormSpec plain = make_spec(512, DataType::kBf16, 16, /*vectors=*/false);
  for (const KernelConfig& config : accepted(plain, Direction::kBackward, device)) {
    const LaunchPlan plan = skeleton(Direction::kBackward).launch_plan(plain, config, device);
    EXPECT_TRUE(plan.workspace.regions.empty() && plan.following.empty());
  }
}

// Rows stay in registers where they fit, and are loaded for each use where they do not.
TEST(RowSkeleton, HoldsRowsThatFit) {
  const RowConfig one_cta{512, 16, 1, 1};
  EXPECT_TRUE(row::Resources(make_spec(8192, DataType::kBf16), Direction::kBackward, one_cta).hold_row);
  EXPECT_FALSE(row::Resources(make_spec(16384, DataType::kFp32), Direction::kBackward, one_cta).hold_row);
  EXPECT_TRUE(row::Resources(make_spec(16384, DataType::kFp32), Direction::kForward, one_cta).hold_row);
}

// A grid is resident as often as its registers allow, whatever it is compiled for: rows of few elements a thread fill
// a multiprocessor.
TEST(RowSkeleton, RowsOfFewElementsFillAMultiprocessor) {
  const DeviceSpec device = *known_device("sm_90a");
  const LayerNormSpec plain = make_spec(256, DataType::kBf16, 16, /*vectors=*/false);
  const RowConfig few{32, 4, 1, 1, "mufu", "grid"}, many{8, 4, 1, 1, "mufu", "grid"};
  EXPECT_EQ(row::Resources(plain, Direction::kForward, few).resident(few, device), device.max_threads / 128);
  EXPECT_LT(row::Resources(plain, Direction::kForward, many).resident(many, device), device.max_threads / 128);
}

// One of a grid's configs that leave a kernel all the registers it wants is tried: the others are the same code.
TEST(RowSkeleton, TheSameCodeIsTriedOnce) {
  const LayerNormSpec spec = make_spec(512, DataType::kBf16);
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> blocks;  // by threads of a row and warps
  for (const KernelConfig& config : accepted(spec, Direction::kForward, *known_device("sm_90a"))) {
    const RowConfig& row = config.row();
    if (row.schedule == "grid") blocks[{row.threads_per_row, row.warps}].push_back(row.blocks_per_sm);
  }
  EXPECT_GT(blocks.size(), 4);
  for (const auto& [threads, tried] : blocks) {
    const auto roomy = [&](int64_t blocks_per_sm) {
      const row::Resources resources(spec, Direction::kForward,
                                     {threads.first, threads.second, 1, blocks_per_sm, "mufu", "grid"});
      return resources.register_cap > 1.3 * static_cast<double>(resources.registers_taken) &&
             32 * threads.second * blocks_per_sm <= 1024;
    };
    EXPECT_LE(std::ranges::count_if(tried, roomy), 1) << threads.first << " threads, " << threads.second << " warps";
  }
}

}  // namespace
}  // namespace hstujit
