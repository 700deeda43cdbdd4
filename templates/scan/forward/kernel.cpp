// Host side of kernel.cuh.
#include <fmt/format.h>

#include "compiler/plan/typed_skeleton.h"
#include "templates/scan/cost.h"

namespace hstujit {

namespace {

constexpr int kLengths = 0, kOffsets = 1;       // arguments
constexpr int64_t kAnySize = int64_t{1} << 62;  // a divisor that makes 1 of any size but 0
constexpr int64_t kMinCapability = 80;
constexpr int64_t kRegisters = 65536, kBaseRegisters = 36;  // of a multiprocessor; of a thread, beside its elements

DataType dtype_of(const OpSpec& spec) { return spec.signature(Direction::kForward)[kLengths].dtype; }
// Sums of signed integers would not wrap.
const char* element_type(const OpSpec& spec) { return dtype_of(spec) == DataType::kInt32 ? "u32" : "u64"; }

// Factor of the offsets, of which there is one more than there are lengths.
GridFactor offsets_factor(int64_t divisor, int64_t bias = 0) { return size_factor(kOffsets, divisor, bias); }

struct ScanForward {
  using Spec = OpSpec;
  using Config = ScanConfig;
  static constexpr std::string_view kName = "scan/forward";
  static constexpr Direction kDirection = Direction::kForward;

  static std::vector<Config> space(const Spec&) {
    std::vector<Config> configs;
    for (const int64_t warps : {8, 16, 32}) {
      for (const int64_t items : {2, 4, 8}) configs.push_back({warps, items});
    }
    return configs;
  }

  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
    std::vector<Rejection> reasons;
    if (device.capability() < kMinCapability)
      reasons.push_back({"arch", fmt::format("{} is older than sm_{}", device.arch, kMinCapability)});
    const int64_t words = static_cast<int64_t>(size_of(dtype_of(spec))) / 4;
    const int64_t needed = kBaseRegisters + config.items_per_thread * words, cap = kRegisters / (32 * config.warps);
    if (needed > cap) {
      reasons.push_back({"registers", fmt::format("a thread needs about {} registers and gets {}", needed, cap)});
    }
    return reasons;
  }

  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec&) {
    const std::string element = element_type(spec);
    const int64_t tile = scan::tile(config);
    const Signature signature = spec.signature(kDirection);
    LaunchPlan plan;
    plan.kernel_name =
        fmt::format("{}_{}_w{}_i{}", spec.op(), to_string(dtype_of(spec)), config.warps, config.items_per_thread);
    plan.threads = static_cast<int>(32 * config.warps);
    plan.slots = {
        argument_slot(signature, "lengths", ParamSlot::Kind::kPointer, "lengths", fmt::format("const {}*", element)),
        argument_slot(signature, "offsets", ParamSlot::Kind::kPointer, "offsets", element + "*"),
        argument_slot(signature, "rows", ParamSlot::Kind::kSize, "lengths"),
        workspace_slot("chunk_sums", element + "*", 0)};
    plan.grid = {offsets_factor(tile)};
    plan.persistent_blocks = scan::kMaxChunks;
    // None of both where there is one tile.
    GridFactor sums;
    sums.constant = scan::kMaxChunks * static_cast<int64_t>(size_of(dtype_of(spec)));
    plan.workspace.regions = {{{offsets_factor(kAnySize, -tile), sums}, false}};
    FollowingKernel chunks;
    chunks.function = "scan_chunks";
    chunks.kernel_name = fmt::format("{}_{}", plan.kernel_name, chunks.function);
    chunks.threads = plan.threads;
    chunks.grid = {offsets_factor(tile), offsets_factor(kAnySize, -tile)};
    chunks.max_blocks = scan::kMaxChunks;
    plan.following = {chunks};
    return plan;
  }

  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize&) {
    return scan::estimate_ms(config, static_cast<int64_t>(size_of(dtype_of(spec))), device);
  }
  static Constants constants(const Spec&, const Config&) { return {}; }
  static std::string instruction_wrappers(const Spec& spec, const Config&) {
    return fmt::format("using ScanElement = {};\n", element_type(spec));
  }
};

}  // namespace

const Skeleton& scan_forward_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<ScanForward>;
  return skeleton;
}

const SkeletonSource& scan_forward_source() {
  static const TypedSource<ScanForward> source;
  return source;
}

}  // namespace hstujit
