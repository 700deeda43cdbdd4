// Says which kernel each instance gets, why, and which cache layer has it. Compiles nothing.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "autotune_cache/store/layers_passed_over.h"
#include "autotune_cache/store/refused_entries.h"
#include "compiler/plan/skeleton.h"
#include "compiler/support/json.h"
#include "compiler/support/memory.h"
#include "operations/configs/operation.h"
#include "runtime/dispatch/kernel_supply.h"
#include "runtime/engine/nearest_entry.h"

namespace hstujit {

namespace {

constexpr size_t kListedCandidates = 8;

Json search_json(const Task& task, const DeviceSpec& device) {
  const SearchSpace space =
      search_space(*task.instance->spec, task.direction, device, heuristic_size(task.bucket), task.restriction);
  Json best = Json::array();
  for (size_t i = 0; i < std::min(space.candidates.size(), kListedCandidates); ++i) {
    best.push_back({{"config", to_json(space.candidates[i].config)},
                    {"describe", describe(space.candidates[i].config)},
                    {"estimate_ms", space.candidates[i].estimate_ms}});
  }
  return {{"candidates", space.candidates.size()},
          {"best_estimates", std::move(best)},
          {"rejected", space.rejected.size()},
          {"reasons", count_reasons(space.rejected)}};
}

// Contents of the layers, listed by the first miss that asks.
class Contents {
 public:
  explicit Contents(Engine& engine) : engine_(engine) {
    const CacheLayers& layers = engine.kernels().store().layers();
    const std::vector<VerifiedFile> passed = layers_passed_over(layers);
    for (const CacheLayerPtr& layer : layers) {
      const auto same = [&](const VerifiedFile& other) { return other.path == layer->path(); };
      if (std::none_of(passed.begin(), passed.end(), same)) searched_.push_back(layer->path());
    }
  }

  // Paths of the layers that a look-up uses.
  const std::vector<std::string>& searched() const { return searched_; }

  KnownKeys& artifacts() {
    if (!artifacts_) artifacts_.emplace(engine_.kernels().store().list(), engine_.kernels().store().layers());
    return *artifacts_;
  }
  KnownKeys& records() {
    if (!records_) records_.emplace(engine_.tuning().list());
    return *records_;
  }

 private:
  Engine& engine_;
  std::vector<std::string> searched_;
  std::optional<KnownKeys> artifacts_;
  std::optional<KnownKeys> records_;
};

// Fails where the system does.
Result<Json> damaged_json(const std::vector<VerifiedFile>& refused) {
  Json damaged = Json::array();
  for (const VerifiedFile& entry : refused) {
    if (entry.unread) return Status(Code::kOutOfMemory, entry.problem);
    damaged.push_back({{"directory", entry.path}, {"problem", entry.problem}});
  }
  return damaged;
}

// Why nothing was found: the entry is there and damaged, or the nearest one differs.
void add_miss(Json& row, Json damaged, const std::optional<NearestEntry>& nearest) {
  if (!damaged.empty()) row["damaged"] = std::move(damaged);
  if (nearest) row["nearest"] = nearest->to_json();
}

Status explain_tuning(Engine& engine, const TuningKey& key, Contents& contents, Json& row) {
  row["tuning_key"] = tuning_digest(key);
  const auto record = engine.tuning().find(key);
  row["tuning_record"] = !record ? "miss" : record->winner.empty() ? "no winner" : "hit";
  if (record) return {};
  HSTUJIT_ASSIGN_OR_RETURN(Json damaged, damaged_json(refused_records(engine.tuning().layers(), tuning_digest(key))));
  row["tuning_miss"] = Json::object();
  add_miss(row["tuning_miss"], std::move(damaged), contents.records().nearest(key));
  return {};
}

Status explain_task(Engine& engine, const DeviceSpec& device, const Task& task, Contents& contents, Json& row) {
  const OpSpecPtr& spec = task.instance->spec;
  row["spec"] = spec->to_json();
  if (const std::string note = spec->note(); !note.empty()) row["note"] = note;
  row["search_space"] = search_json(task, device);
  const Result<KernelChoice> chosen =
      choose_kernel(engine, *spec, task.direction, device, task.bucket, task.restriction);
  // Where its own key has no record, a tuned choice is of the other key that serves.
  const std::vector<TuningKey> keys = serving_keys(*spec, task.direction, device, task.bucket, task.restriction);
  const bool other = chosen.ok() && chosen->tuned && !engine.tuning().find(keys.front());
  HSTUJIT_RETURN_IF_ERROR(explain_tuning(engine, other ? keys.back() : keys.front(), contents, row));
  if (!chosen.ok()) return chosen.status();
  HSTUJIT_ASSIGN_OR_RETURN(const SuppliedKernel kernel, supply_kernel(engine, spec, task.direction, device, task.bucket,
                                                                      task.restriction, *chosen, Supply::kLook));
  const KernelChoice& choice = kernel.choice;
  row["config"] = to_json(choice.config);
  row["describe"] = describe(choice.config);
  choice.write(row);
  row["why"] = choice.why;

  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(choice.config.skeleton));
  const LaunchPlan plan = skeleton->launch_plan(*spec, choice.config, device);
  row["kernel"] = plan.kernel_name;
  row["launch"] = {{"threads", plan.threads},
                   {"shared_memory", plan.shared_memory},
                   {"persistent_blocks", plan.persistent_blocks},
                   {"parameter_bytes", slot_offsets(plan.slots).back()},
                   {"workspace", !plan.workspace.regions.empty()},
                   {"following", Json::array()}};
  for (const FollowingKernel& kernel : plan.following) row["launch"]["following"].push_back(kernel.kernel_name);

  const ArtifactKey key = artifact_key(kernel.request);
  HSTUJIT_ASSIGN_OR_RETURN(const std::string digest, artifact_digest(key));
  row["key"] = digest;
  row["key_fields"] = {{"schema", kArtifactSchema}};
  for (const auto& [name, value] : key.named_fields()) {
    if (name != "option") row["key_fields"][name] = value;
  }
  row["key_fields"]["options"] = key.options;
  const KernelBinaryPtr& binary = kernel.binary;
  row["cache"] = {{"hit", binary != nullptr}, {"searched", contents.searched()}};
  if (binary == nullptr) {
    HSTUJIT_ASSIGN_OR_RETURN(Json damaged,
                             damaged_json(refused_artifacts(engine.kernels().store().layers(), key.arch, digest)));
    add_miss(row["cache"], std::move(damaged), contents.artifacts().nearest(key));
    row["on_miss"] = to_string(engine.on_miss());
    return {};
  }
  row["cache"]["layer"] = to_string(binary->origin);
  row["cache"]["directory"] = binary->directory;
  row["cubin_bytes"] = binary->cubin.size();
  row["nvrtc"] = binary->info.nvrtc;
  row["resources"] = json_or_null(binary->info.resources);
  return {};
}

}  // namespace

OperationResult explain(Engine& engine, const Config& config, const OperationOptions& options) {
  OperationResult result;
  const auto kernels = list_kernels(engine, config, options.op_name);
  if (!kernels.ok()) return {Json::object(), kernels.status()};
  const auto device = engine.target(options.arch.c_str(), config.device, options.device);
  if (!device.ok()) return {Json::object(), device.status()};
  const LengthsOfKeys lengths(*kernels);
  const std::vector<Task> keys = with_batch_classes(*list_keys(engine, config, options.op_name), *device);
  Contents contents(engine);
  TaskProgress progress(options, "explain", keys.size());
  Json rows = Json::array();
  for (const Task& key : keys) {
    Json row = key.to_json();
    if (key.has_length()) row["max_seq_lens"] = lengths.of(key);
    const Status status =
        within_memory("its kernel", [&] { return explain_task(engine, *device, key, contents, row); });
    if (!status.ok()) {
      row["error"] = error_json(status);
      result.fail(status.with_context(key.label()));
    }
    rows.push_back(std::move(row));
    progress.done(key);
  }
  result.report = {{"device", to_json(*device)},
                   {"length_mode", to_string(length_mode_of(engine, config))},
                   {"deterministic", restriction_of(engine, config).deterministic},
                   {"instances", std::move(rows)}};
  return result;
}

}  // namespace hstujit
