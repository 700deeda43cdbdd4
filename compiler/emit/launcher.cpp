#include "compiler/emit/launcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/emit/launcher_support.h"
#include "compiler/emit/launcher_values.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

std::string grid_text(const Signature& signature, const std::vector<GridFactor>& grid, int64_t max_blocks) {
  const std::string blocks = product_text(signature, grid);
  return max_blocks > 0 ? fmt::format("std::min<int64_t>({}, {})", blocks, max_blocks) : blocks;
}

// Allocates it, with the offset of each region.
std::string print_workspace(const Signature& signature, const WorkspacePlan& workspace) {
  if (workspace.regions.empty()) return "";
  std::string text = "\n";
  for (size_t i = 0; i < workspace.regions.size(); ++i) {
    text += i == 0 ? "  const int64_t region_0 = 0;\n"
                   : fmt::format("  const int64_t region_{0} = ceil_divide(region_{1}_end, {2}) * {2};\n", i, i - 1,
                                 WorkspacePlan::kAlignment);
    text += fmt::format("  const int64_t region_{0}_end = region_{0} + {1};\n", i,
                        product_text(signature, workspace.regions[i].bytes));
  }
  return text + fmt::format(
                    "  const size_t workspace_bytes = static_cast<size_t>(region_{}_end);\n"
                    "  char* workspace = nullptr;\n"
                    "  CHECK(cudaMalloc(&workspace, workspace_bytes));\n",
                    workspace.regions.size() - 1);
}

bool has_clusters(const LaunchPlan& plan) { return plan.cluster.max > 1; }

// `config` of the launch, with split-KV.
std::string print_clusters(const Signature& signature, const LaunchPlan& plan) {
  if (!has_clusters(plan)) return "";
  return fmt::format(
      "  const int64_t cluster = cluster_size({0}, {1}, {2}, blocks, {3}, {4}, {5});\n"
      "  cudaLaunchAttribute attribute = {{}};\n"
      "  const cudaLaunchConfig_t config = cluster_config(blocks * cluster, cluster, {1}, {2}, &attribute);\n",
      plan.kernel_name, plan.threads, plan.shared_memory, signature[static_cast<size_t>(plan.cluster.argument)].name,
      plan.cluster.min, plan.cluster.max);
}

// Whether there are sizes for which it does not run.
bool may_have_none(const FollowingKernel& kernel) {
  return std::any_of(kernel.grid.begin(), kernel.grid.end(), [](const GridFactor& factor) { return factor.bias < 0; });
}

// The body of the loop that is timed: all that one launch enqueues.
std::string print_launch(const LaunchPlan& plan) {
  std::string text;
  const std::vector<WorkspaceRegion>& regions = plan.workspace.regions;
  const auto kept = std::find_if(regions.begin(), regions.end(), [](const auto& region) { return !region.cleared; });
  if (kept != regions.begin()) {
    text += fmt::format("    CHECK(cudaMemsetAsync(workspace, 0, {}));\n",
                        kept == regions.end() ? "workspace_bytes" : fmt::format("region_{}", kept - regions.begin()));
  }
  text += has_clusters(plan) ? fmt::format("    CHECK(cudaLaunchKernelEx(&config, {}, params));\n", plan.kernel_name)
                             : fmt::format(
                                   "    {}<<<static_cast<unsigned>(blocks), {}, {}>>>(params);\n"
                                   "    CHECK(cudaGetLastError());\n",
                                   plan.kernel_name, plan.threads, plan.shared_memory);
  for (const FollowingKernel& kernel : plan.following) {
    text += fmt::format(
        "    {2}{0}<<<static_cast<unsigned>({0}_blocks), {1}{3}>>>(params);\n"
        "    CHECK(cudaGetLastError());\n",
        kernel.kernel_name, kernel.threads,
        may_have_none(kernel) ? fmt::format("if ({}_blocks > 0) ", kernel.kernel_name) : "",
        kernel.shared_memory > 0 ? fmt::format(", {}", kernel.shared_memory) : "");
  }
  return text;
}

// Allows kernels the shared memory that they have.
std::string print_shared_memory(const LaunchPlan& plan) {
  const auto allow = [](const std::string& kernel, int64_t bytes) {
    return fmt::format("  CHECK(cudaFuncSetAttribute({}, cudaFuncAttributeMaxDynamicSharedMemorySize, {}));\n", kernel,
                       bytes);
  };
  std::string text = allow(plan.kernel_name, plan.shared_memory);
  for (const FollowingKernel& kernel : plan.following) {
    if (kernel.shared_memory > 0) text += allow(kernel.kernel_name, kernel.shared_memory);
  }
  return text;
}

// Whether a text has the name of a variable: not as a member of something else, nor as a part of a word.
bool mentions(std::string_view text, std::string_view name) {
  constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const size_t end = at + name.size();
    const bool whole = end == text.size() || kWord.find(text[end]) == std::string_view::npos;
    if (whole && before != '.' && before != ':' && kWord.find(before) == std::string_view::npos) return true;
  }
  return false;
}

// The program's arguments, and the batch that it makes of them.
struct Command {
  const char* usage;
  const char* batch;
};

constexpr Command kOfSequences = {"[sequences [max_seq_len]]",
                                  "  const int64_t sequences = argc > 1 ? read_count(argv[1]) : 64, longest = argc > 2 "
                                  "? read_count(argv[2]) : 1024;\n"
                                  "  if (sequences == 0 || longest == 0) return usage(argv[0]);\n"
                                  "  const Batch batch = make_batch(sequences, longest);\n"};

constexpr Command kOfRows = {"[rows]",
                             "  const int64_t rows = argc > 1 ? read_count(argv[1]) : 131072;\n"
                             "  if (rows == 0) return usage(argv[0]);\n"
                             "  Batch batch;\n"
                             "  batch.offsets.push_back(rows);\n"};

}  // namespace

std::string nvcc_target(const DeviceSpec& device) {
  std::string number = device.arch;
  if (number.starts_with("sm_")) number.erase(0, 3);
  return fmt::format("-gencode arch=compute_{0},code=sm_{0}", number);
}

std::string print_launcher(const OpSpec& spec, Direction direction, const LaunchPlan& plan, const DeviceSpec& device) {
  const Signature signature = spec.signature(direction);
  const Command& command = has_sequences(signature) ? kOfSequences : kOfRows;
  std::string text = fmt::format(
      "// Launches {0} on random input and prints its time.\n"
      "// Build: nvcc -std=c++17 {1} {2} -o {0}\n"
      "// Run:   ./{0} {3}\n"
      "#include \"{4}\"\n",
      plan.kernel_name, nvcc_target(device), launcher_file(plan), command.usage, source_file(plan));
  text += kLauncherSupport;
  text += print_choices(signature);
  text += fmt::format(
      "\nstatic int usage(const char* program) {{\n"
      "  std::fprintf(stderr, \"usage: %s {}, from 1 to %lld\\n\", program, static_cast<long long>(kLargestCount));\n"
      "  return 2;\n"
      "}}\n"
      "\nint main(int argc, char** argv) try {{\n",
      command.usage);
  text += command.batch;
  std::string rest = print_workspace(signature, plan.workspace);
  rest += "\n  Params params = {};\n";
  for (const ParamSlot& slot : plan.slots)
    rest += fmt::format("  params.{} = {};\n", slot.name, slot_value(signature, slot));
  rest += fmt::format("\n  const int64_t blocks = {};\n", grid_text(signature, plan.grid, plan.persistent_blocks));
  for (const FollowingKernel& kernel : plan.following) {
    rest += fmt::format("  const int64_t {}_blocks = {};\n", kernel.kernel_name,
                        grid_text(signature, kernel.grid, kernel.max_blocks));
  }
  rest += fmt::format(
      "{1}"
      "{3}"
      "  cudaEvent_t begin, end;\n"
      "  CHECK(cudaEventCreate(&begin));\n"
      "  CHECK(cudaEventCreate(&end));\n"
      "  constexpr int kWarmups = 3, kRepeats = 20;\n"
      "  for (int i = 0; i < kWarmups + kRepeats; ++i) {{\n"
      "    if (i == kWarmups) CHECK(cudaEventRecord(begin));\n"
      "{2}"
      "  }}\n"
      "  CHECK(cudaEventRecord(end));\n"
      "  CHECK(cudaDeviceSynchronize());\n"
      "  float milliseconds = 0;\n"
      "  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));\n"
      "  std::printf(\"{0}: %lld rows, %.3f ms\\n\", static_cast<long long>(batch.rows()), milliseconds / kRepeats);\n"
      "  return 0;\n"
      "}} catch (const std::exception& error) {{  // no memory for a tensor\n"
      "  std::fprintf(stderr, \"%s: the batch does not fit into host memory: %s\\n\", argv[0], error.what());\n"
      "  return 1;\n"
      "}}\n",
      plan.kernel_name, print_shared_memory(plan), print_launch(plan), print_clusters(signature, plan));
  // Compilers would warn that nobody reads an integer that the launch does not need.
  for (const Argument& argument : signature) {
    if (argument.kind == ArgumentKind::kTensor || mentions(rest, argument.name))
      text += declare_argument(signature, argument);
  }
  return text + rest;
}

}  // namespace hstujit
