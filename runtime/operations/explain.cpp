// Says which kernel each instance gets, why, and which cache layer has it. Compiles nothing.
#include <map>

#include "compiler/plan/skeleton.h"
#include "runtime/operations/operation.h"

namespace hstujit {

namespace {

constexpr size_t kListedCandidates = 5;

Json search_json(const Task& task, const DeviceSpec& device) {
  const SearchSpace space = search_space(*task.instance->spec, task.direction, device, heuristic_size(task.bucket));
  Json best = Json::array();
  for (size_t i = 0; i < std::min(space.candidates.size(), kListedCandidates); ++i) {
    best.push_back({{"config", to_json(space.candidates[i].config)}, {"estimate_ms", space.candidates[i].estimate_ms}});
  }
  std::map<std::string, int> reasons;
  for (const RejectedCandidate& rejected : space.rejected) {
    for (const Rejection& reason : rejected.reasons) ++reasons[reason.reason];
  }
  return {{"candidates", space.candidates.size()},
          {"best_estimates", std::move(best)},
          {"rejected", space.rejected.size()},
          {"reasons", reasons}};
}

Status explain_task(Engine& engine, const DeviceSpec& device, const Task& task, Json& row) {
  const OpSpecPtr& spec = task.instance->spec;
  row["spec"] = spec->to_json();
  row["search_space"] = search_json(task, device);
  const TuningKey tuning = tuning_key(*spec, task.direction, device, task.bucket);
  row["tuning_key"] = tuning_digest(tuning);
  row["tuning_record"] = engine.tuning().find(tuning).has_value() ? "hit" : "miss";
  HSTUJIT_ASSIGN_OR_RETURN(const KernelChoice choice,
                           choose_kernel(engine, *spec, task.direction, device, task.bucket));
  row["config"] = to_json(choice.config);
  row["describe"] = describe(choice.config);
  row["tuned"] = choice.tuned;
  if (!choice.nearest.empty()) row["nearest_device"] = choice.nearest;
  row["why"] = choice.why;

  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(choice.config.skeleton));
  const LaunchPlan plan = skeleton->launch_plan(*spec, choice.config, device);
  row["kernel"] = plan.kernel_name;
  row["launch"] = {{"threads", plan.threads},
                   {"shared_memory", plan.shared_memory},
                   {"persistent_blocks", plan.persistent_blocks},
                   {"parameter_bytes", slot_offsets(plan.slots).back()}};

  const CompileRequest request{spec, task.direction, choice.config, device, engine.lineinfo()};
  const ArtifactKey key = artifact_key(request);
  HSTUJIT_ASSIGN_OR_RETURN(row["key"], artifact_digest(key));
  row["key_fields"] = Json::object();
  for (const auto& [name, value] : key.named_fields()) row["key_fields"][name] = value;
  const KernelBinaryPtr binary = engine.kernels().find(request);
  row["cache"] = {{"hit", binary != nullptr}, {"searched", engine.kernels().store().directories().in_order()}};
  if (binary == nullptr) {
    row["on_miss"] = to_string(engine.on_miss());
    return {};
  }
  row["cache"]["layer"] = to_string(binary->origin);
  row["cache"]["directory"] = binary->directory;
  row["cubin_bytes"] = binary->cubin.size();
  row["nvrtc"] = binary->info.nvrtc;
  row["resources"] = Json::parse(binary->info.resources, nullptr, false);
  return {};
}

}  // namespace

OperationResult explain(Engine& engine, const Config& config, const OperationOptions& options) {
  OperationResult result;
  const auto tasks = list_tasks(engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  const auto device = engine.target(options.arch.c_str(), config.device, options.device);
  if (!device.ok()) return {Json::object(), device.status()};
  Json rows = Json::array();
  for (const Task& task : *tasks) {
    Json row = task.to_json();
    if (const Status status = explain_task(engine, *device, task, row); !status.ok()) {
      row["error"] = error_json(status);
      result.fail(status.with_context(task.label()));
    }
    rows.push_back(std::move(row));
  }
  result.report = {{"device", to_json(*device)},
                   {"length_mode", to_string(length_mode_of(engine, config))},
                   {"instances", std::move(rows)}};
  return result;
}

}  // namespace hstujit
