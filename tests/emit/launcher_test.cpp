// The main beside a generated kernel: what it fills in, what it leaves to its user, and that nvcc takes the pair.
#include "compiler/emit/launcher.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/emit/source.h"
#include "compiler/spec/limits.h"
#include "compiler/spec/operators/delta_hstu_attention/spec.h"
#include "compiler/spec/operators/jagged_dense_bmm_broadcast_add/spec.h"
#include "tests/emit/emit_with.h"
#include "tests/emit/toy_operator.h"
#include "tests/passes/attention_cases.h"

namespace hstujit {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct Pair {
  EmittedKernel kernel;
  std::string launcher;
};

// The first config of `skeleton` that the device accepts.
Pair emit_first(const char* skeleton_name, const char* arch, const OpSpec& spec) {
  const DeviceSpec device = *known_device(arch);
  const Skeleton* skeleton = *find_skeleton(skeleton_name);
  for (const KernelConfig& config : skeleton->space(spec)) {
    if (!skeleton->reject(spec, config, device).empty()) continue;
    auto kernel = emit_kernel(spec, Direction::kForward, config, device);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    std::string launcher = print_launcher(spec, Direction::kForward, kernel->plan, device);
    return {std::move(*kernel), std::move(launcher)};
  }
  ADD_FAILURE() << "no config of " << skeleton_name << " on " << arch;
  return {};
}

Pair emit_attention(const char* skeleton_name, const char* arch, const HstuAttentionParams& params) {
  return emit_first(skeleton_name, arch, HstuAttentionSpec(params));
}

Pair emit_delta(const char* skeleton_name, const char* arch, bool jagged_queries) {
  DeltaHstuAttentionParams params;
  static_cast<HstuAttentionParams&>(params) = attention_params();
  params.jagged_queries = jagged_queries;
  return emit_first(skeleton_name, arch, DeltaHstuAttentionSpec(params));
}

Pair emit_toy(const ToySkeleton& skeleton = ToySkeleton()) {
  const ToySpec spec;
  const DeviceSpec device = *known_device("sm_80");
  auto kernel =
      emit_with(skeleton, toy_templates(), toy_schema(), spec, Direction::kForward, skeleton.space(spec)[0], device);
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  std::string launcher = print_launcher(spec, Direction::kForward, kernel->plan, device);
  return {std::move(*kernel), std::move(launcher)};
}

JaggedDenseBmmBroadcastAddSpec product_of_sequences() {
  JaggedDenseBmmBroadcastAddParams params;
  params.k = params.n = 64;
  return JaggedDenseBmmBroadcastAddSpec(params);
}

HstuAttentionParams with_targets() {
  HstuAttentionParams params = attention_params();
  params.num_targets = true;
  return params;
}

TEST(Launcher, SaysHowItIsBuilt) {
  for (const auto& [arch, target] : {std::pair{"sm_80", "-gencode arch=compute_80,code=sm_80"},
                                     {"sm_90a", "-gencode arch=compute_90a,code=sm_90a"}}) {
    const Pair pair = emit_attention("attention/sm80_forward", arch, attention_params());
    const std::string& kernel = pair.kernel.plan.kernel_name;
    EXPECT_EQ(launcher_file(pair.kernel.plan), kernel + "_main.cu");
    EXPECT_THAT(pair.launcher, HasSubstr("// Build: nvcc -std=c++17 " + std::string(target) + " " + kernel +
                                         "_main.cu -o " + kernel + "\n"));
    EXPECT_THAT(pair.launcher, HasSubstr("#include \"" + kernel + ".cu\"\n"));
  }
}

TEST(Launcher, ShortSequencesHaveNoMoreTargetsThanRows) {
  const Pair pair = emit_attention("attention/sm80_forward", "sm_80", with_targets());
  EXPECT_THAT(pair.launcher, HasSubstr("upload(convert<int64_t>(batch.targets(Chosen::num_targets)))"));
  EXPECT_THAT(pair.launcher, HasSubstr("upload(convert<int64_t>(batch.offsets))"));
  EXPECT_THAT(emit_attention("attention/sm80_forward", "sm_80", attention_params()).launcher,
              Not(HasSubstr("Chosen::num_targets")));
}

TEST(Launcher, WhatTheSignatureLeavesOpenIsAConstant) {
  const std::string attention = emit_attention("attention/sm80_forward", "sm_80", attention_params()).launcher;
  EXPECT_THAT(attention, HasSubstr("struct Chosen {\n"
                                   "  static constexpr double alpha = 1.0;\n"
                                   "  static constexpr int64_t scaling_seqlen = 0;\n"
                                   "};\n"));
  const std::string norm = emit_toy().launcher;
  EXPECT_THAT(norm, HasSubstr("struct Chosen {\n"
                              "  static constexpr int64_t size_K = 1024;\n"
                              "  static constexpr double eps = 1.0;\n"
                              "};\n"));
  EXPECT_THAT(norm, HasSubstr("weight = random_tensor<float>((2 * Chosen::size_K + 1) * 64, "));
  EXPECT_THAT(norm, HasSubstr(" [rows]\n"));
  EXPECT_THAT(norm, HasSubstr("  batch.offsets.push_back(rows);\n"));
  EXPECT_THAT(norm, Not(HasSubstr("longest")));
  EXPECT_THAT(attention, HasSubstr(" [sequences [max_seq_len]]\n"));
  EXPECT_THAT(norm, HasSubstr("row_index = upload(std::vector<int32_t>(batch.rows(), 0));"));
}

TEST(Launcher, ABiasHasRowsThatBeginAtTheAlignment) {
  HstuAttentionParams params = attention_params();
  params.rab_heads = 1;
  params.alignment = 16;
  const HstuAttentionSpec spec(params);
  const Signature signature = spec.signature(Direction::kForward);
  LaunchPlan plan;
  plan.kernel_name = "kernel";
  for (int dimension = 0; dimension < 3; ++dimension) {
    ParamSlot slot;
    slot.name = fmt::format("stride_{}", dimension);
    slot.kind = ParamSlot::Kind::kStride;
    slot.argument = find_argument(signature, "rab");
    slot.dimension = dimension;
    plan.slots.push_back(slot);
  }
  const std::string text = print_launcher(spec, Direction::kForward, plan, *known_device("sm_80"));
  const std::string row = "ceil_divide(batch.max_seq_len, 8) * 8";
  EXPECT_THAT(text, HasSubstr("rab = random_tensor<uint16_t>(batch.sequences() * batch.max_seq_len * " + row));
  EXPECT_THAT(text, HasSubstr("params.stride_0 = batch.max_seq_len * " + row + ";\n"));
  EXPECT_THAT(text, HasSubstr("params.stride_1 = batch.max_seq_len * " + row + ";\n"));
  EXPECT_THAT(text, HasSubstr("params.stride_2 = " + row + ";\n"));
}

TEST(Launcher, LastRowsOfSequencesAreACountOrOffsets) {
  const std::string dense = emit_delta("attention/sm80_forward", "sm_80", false).launcher;
  EXPECT_THAT(dense, HasSubstr("struct Chosen {\n"
                               "  static constexpr int64_t max_delta_len = 64;\n"));
  EXPECT_THAT(dense, HasSubstr("q = random_tensor<uint16_t>(batch.sequences() * Chosen::max_delta_len * "));
  EXPECT_THAT(dense, HasSubstr("k = random_tensor<uint16_t>(batch.rows() * "));
  EXPECT_THAT(dense, HasSubstr("const int64_t max_delta_len = Chosen::max_delta_len;"));
  EXPECT_THAT(dense, Not(HasSubstr("seq_offsets_q")));
  const std::string jagged = emit_delta("attention/sm80_forward", "sm_80", true).launcher;
  EXPECT_THAT(jagged, HasSubstr("  static constexpr int64_t max_delta_len = 64;\n"));
  EXPECT_THAT(jagged, HasSubstr("q = random_tensor<uint16_t>(batch.query_offsets(Chosen::max_delta_len).back() * "));
  EXPECT_THAT(jagged,
              HasSubstr("seq_offsets_q = upload(convert<int64_t>(batch.query_offsets(Chosen::max_delta_len)))"));
  EXPECT_THAT(jagged, Not(HasSubstr("size_Lq")));
}

TEST(Launcher, FewTilesAreSharedOutOverClusters) {
  const Pair pair = emit_delta("attention/sm90_forward", "sm_90a", false);
  const LaunchPlan& plan = pair.kernel.plan;
  EXPECT_THAT(
      pair.launcher,
      HasSubstr(fmt::format("  const int64_t cluster = cluster_size({}, {}, {}, blocks, max_seq_len, {}, {});\n",
                            plan.kernel_name, plan.threads, plan.shared_memory, plan.cluster.min, plan.cluster.max)));
  EXPECT_THAT(pair.launcher, HasSubstr("config = cluster_config(blocks * cluster, cluster, "));
  EXPECT_THAT(pair.launcher, HasSubstr(fmt::format("    CHECK(cudaLaunchKernelEx(&config, {}, params));\n"
                                                   "  }}\n",
                                                   plan.kernel_name)));
  EXPECT_THAT(emit_attention("attention/sm90_forward", "sm_90a", attention_params()).launcher,
              Not(HasSubstr("cluster_size(hstu")));
}

TEST(Launcher, EnqueuesAllThatALaunchConsistsOf) {
  const std::string text = emit_toy(AddRowsSkeleton()).launcher;
  EXPECT_THAT(text, HasSubstr("  const int64_t region_0 = 0;\n"
                              "  const int64_t region_0_end = region_0 + batch.rows() * 256;\n"
                              "  const size_t workspace_bytes = static_cast<size_t>(region_0_end);\n"
                              "  char* workspace = nullptr;\n"
                              "  CHECK(cudaMalloc(&workspace, workspace_bytes));\n"));
  EXPECT_THAT(text, HasSubstr("  params.sums = reinterpret_cast<float*>(workspace + region_0);\n"));
  EXPECT_THAT(text, HasSubstr("  const int64_t add_rows_write_blocks = ceil_divide(batch.rows(), 2);\n"));
  EXPECT_THAT(text, HasSubstr("    CHECK(cudaMemsetAsync(workspace, 0, workspace_bytes));\n"
                              "    add_rows<<<static_cast<unsigned>(blocks), 64, 0>>>(params);\n"
                              "    CHECK(cudaGetLastError());\n"
                              "    add_rows_write<<<static_cast<unsigned>(add_rows_write_blocks), 32>>>(params);\n"
                              "    CHECK(cudaGetLastError());\n"));
  const std::string plain = emit_toy().launcher;
  EXPECT_THAT(plain, Not(HasSubstr("workspace")));
}

TEST(Launcher, ClearsTheFirstRegionsOfAWorkspaceOnly) {
  const OpSpecPtr spec =
      *parse_op_spec({{"op", "hstu_attention"}, {"heads", 4}, {"attn_dim", 64}, {"hidden_dim", 64}}, "");
  const DeviceSpec device = *known_device("sm_90a");
  const Skeleton& skeleton = **find_skeleton("attention/sm90_backward_fused");
  std::vector<KernelConfig> space = skeleton.space(*spec);
  const auto semaphore =
      std::find_if(space.begin(), space.end(), [](const auto& c) { return c.attention().schedule == "semaphore"; });
  ASSERT_NE(semaphore, space.end());
  const std::string text =
      print_launcher(*spec, Direction::kBackward, skeleton.launch_plan(*spec, *semaphore, device), device);
  EXPECT_THAT(text, HasSubstr("  const int64_t region_1 = ceil_divide(region_0_end, 256) * 256;\n"));
  EXPECT_THAT(text, HasSubstr("  const size_t workspace_bytes = static_cast<size_t>(region_3_end);\n"));
  EXPECT_THAT(text, HasSubstr("  params.dq_accum = reinterpret_cast<float*>(workspace + region_3);\n"));
  EXPECT_THAT(text, HasSubstr("    CHECK(cudaMemsetAsync(workspace, 0, region_3));\n"));
}

// A tile of 512 offsets is all that one kernel does. Where there is no following one, it may not be launched.
TEST(Launcher, KernelsThatHaveNothingToDoAreLeftOut) {
  const Pair pair = emit_first("scan/forward", "sm_90a", **parse_op_spec({{"op", "complete_cumsum"}}, ""));
  EXPECT_THAT(pair.launcher, HasSubstr("Run:   ./complete_cumsum_int64_w8_i2 [rows]\n"));
  EXPECT_THAT(pair.launcher,
              HasSubstr("  int64_t* const offsets = upload(std::vector<int64_t>(batch.rows() + 1, 0));\n"));
  EXPECT_THAT(pair.launcher, HasSubstr("  const int64_t blocks = std::min<int64_t>(ceil_divide(batch.rows() + 1, 512), "
                                       "1024);\n"));
  EXPECT_THAT(pair.launcher, HasSubstr("    if (complete_cumsum_int64_w8_i2_scan_chunks_blocks > 0) "
                                       "complete_cumsum_int64_w8_i2_scan_chunks<<<"));
}

// Launchers of the first config of every template are checked: sums with 0, products and quotients with 1 say nothing.
TEST(Launcher, ExpressionsAreAsShortAsTheyCanBe) {
  const auto says_nothing = ContainsRegex("[+-] 0[^.x0-9]|[*] 1[^.0-9]|[^.0-9a-z_]1 [*]|, 1[)]( [*]|;)");
  for (const char* text : {"(batch.rows() + 0, 2)", "ceil_divide(batch.rows(), 1) * 256", "(1 * x, 3)", "(x * 1, 3)"})
    EXPECT_THAT(text, says_nothing);
  const DeviceSpec device = *known_device("sm_90a");
  int checked = 0;
  for (const Skeleton* skeleton : skeletons()) {
    const nlohmann::ordered_json attention = {
        {"op", "hstu_attention"}, {"heads", 1}, {"attn_dim", 64}, {"hidden_dim", 64}, {"rab_heads", 1}};
    const nlohmann::ordered_json norm = {{"op", "layer_norm"}, {"width", 64}};
    const nlohmann::ordered_json cumsum = {{"op", "complete_cumsum"}};
    const nlohmann::ordered_json addmm = {{"op", "addmm"}, {"k", 64}, {"n", 64}};
    const Family family = skeleton->family();
    const OpSpecPtr spec = *parse_op_spec(family == Family::kRow    ? norm
                                          : family == Family::kScan ? cumsum
                                          : family == Family::kGemm ? addmm
                                                                    : attention,
                                          "");
    for (const KernelConfig& config : skeleton->space(*spec)) {
      if (!skeleton->reject(*spec, config, device).empty()) continue;
      const std::string text =
          print_launcher(*spec, skeleton->direction(), skeleton->launch_plan(*spec, config, device), device);
      EXPECT_THAT(text.substr(text.find("int main(")), Not(says_nothing)) << skeleton->name();
      ++checked;
      break;
    }
  }
  EXPECT_GE(checked, 7);
}

// Products of sequences have the argument for callers' sake, and no kernel of them asks for it.
TEST(Launcher, IntegersThatTheLaunchDoesNotNeedAreLeftOut) {
  EXPECT_THAT(emit_first("gemm/sm80", "sm_80", product_of_sequences()).launcher,
              Not(HasSubstr("const int64_t max_seq_len")));
  EXPECT_THAT(emit_attention("attention/sm80_forward", "sm_80", attention_params()).launcher,
              HasSubstr("  const int64_t max_seq_len = batch.max_seq_len;\n"));
}

// Counts of rows and of sequences alike.
TEST(Launcher, CountsAreReadAndLimited) {
  const Pair rows = emit_first("scan/forward", "sm_90a", **parse_op_spec({{"op", "complete_cumsum"}}, ""));
  EXPECT_THAT(rows.launcher, HasSubstr("usage: %s [rows], from 1 to %lld"));
  EXPECT_THAT(rows.launcher, HasSubstr("rows = argc > 1 ? read_count(argv[1]) : 131072;\n"));
  const std::string sequences = emit_attention("attention/sm80_forward", "sm_80", attention_params()).launcher;
  EXPECT_THAT(sequences, HasSubstr("usage: %s [sequences [max_seq_len]], from 1 to %lld"));
  EXPECT_THAT(sequences, HasSubstr("longest = argc > 2 ? read_count(argv[2]) : 1024;\n"));
  for (const std::string& text : {rows.launcher, sequences}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("kLargestCount = {};", kMaxSeqLen)));
    EXPECT_THAT(text, Not(HasSubstr("std::ato")));
  }
}

// Compiles the pair in a folder of its own, and there runs `commands`, in which ./program is what came of it. Without
// nvcc the test is skipped.
void expect_compiles(const Pair& pair, const std::string& arch, const std::string& commands = "") {
  if (std::string_view(HSTUJIT_NVCC).empty()) GTEST_SKIP() << "nvcc was not found when the tests were configured";
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("hstujit_launcher_" + arch + "_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / (pair.kernel.plan.kernel_name + ".cu")) << pair.kernel.source;
  std::ofstream(folder / launcher_file(pair.kernel.plan)) << pair.launcher;
  const std::string command = std::string("cd '") + folder.string() + "' && '" HSTUJIT_NVCC "' -ccbin '" +
                              HSTUJIT_HOST_COMPILER + "' -std=c++17 " + nvcc_target(*known_device(arch)) +
                              (commands.empty() ? " -c " : " ") + launcher_file(pair.kernel.plan) +
                              " -o program > log 2>&1" +
                              (commands.empty() ? "" : " && ( " + commands + " ) >> log 2>&1");
  const int code = std::system(command.c_str());
  std::stringstream log;
  log << std::ifstream(folder / "log").rdbuf();
  EXPECT_EQ(code, 0) << command << "\n" << log.str();
  EXPECT_THAT(log.str(), Not(HasSubstr("warning")));
  fs::remove_all(folder);
}

TEST(Launcher, NvccCompilesAttention) {
  expect_compiles(emit_attention("attention/sm80_forward", "sm_80", with_targets()), "sm_80");
}

TEST(Launcher, NvccCompilesTensorMaps) {
  expect_compiles(emit_attention("attention/sm90_forward", "sm_90a", attention_params()), "sm_90a");
}

TEST(Launcher, NvccCompilesLastRowsOfSequences) {
  expect_compiles(emit_delta("attention/sm80_forward", "sm_80", true), "sm_80");
  expect_compiles(emit_delta("attention/sm90_forward", "sm_90a", false), "sm_90a");
}

TEST(Launcher, NvccCompilesProductsOfSequences) {
  expect_compiles(emit_first("gemm/sm80", "sm_80", product_of_sequences()), "sm_80");
}

TEST(Launcher, NvccCompilesAnOperatorWithoutRegions) { expect_compiles(emit_toy(), "sm_80"); }

TEST(Launcher, NvccCompilesLaunchesOfSeveralKernels) { expect_compiles(emit_toy(AddRowsSkeleton()), "sm_80"); }

// Before a tensor is made or a device is asked for.
TEST(Launcher, CountsThatAreNoneEndTheProgramWithItsUsage) {
  const std::string commands =
      "for count in 1000000000000 268435457 0 -1 1x x ''; do ./program \"$count\"; [ $? = 2 ] || exit 1; done";
  expect_compiles(emit_toy(), "sm_80", commands);
  expect_compiles(emit_attention("attention/sm80_forward", "sm_80", attention_params()), "sm_80", commands);
}

}  // namespace
}  // namespace hstujit
