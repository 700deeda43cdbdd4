// Writes down which kernel each key of a config gets, for HSTUJIT_FROZEN.
#include "compiler/support/json.h"
#include "compiler/support/memory.h"
#include "operations/configs/operation.h"
#include "runtime/engine/frozen_choices.h"

namespace hstujit {

OperationResult freeze(Engine& engine, const Config& config, const OperationOptions& options) {
  OperationResult result;
  const auto tasks = list_keys(engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  const auto device = engine.target(options.arch.c_str(), config.device, options.device);
  if (!device.ok()) return {Json::object(), device.status()};
  const std::vector<Task> all = with_batch_classes(*tasks, *device);

  TaskProgress progress(options, "choose", all.size());
  std::vector<FrozenChoice> choices;
  Json failed = Json::array();
  for (const Task& task : all) {
    const OpSpec& spec = *task.instance->spec;
    const auto choice = within_memory("its kernel", [&] {
      return choose_kernel(engine, spec, task.direction, *device, task.bucket, task.restriction);
    });
    progress.done(task);
    if (!choice.ok()) {
      failed.push_back(task.to_json());
      failed.back()["error"] = error_json(choice.status());
      result.fail(choice.status().with_context(task.label()));
      continue;
    }
    choices.push_back({tuning_key(spec, task.direction, *device, task.bucket, task.restriction), choice->config});
  }
  // Some of the keys would be worse than none: a process would find the others missing.
  if (!failed.empty()) {
    result.report["failed"] = std::move(failed);
    return result;
  }
  const auto text = format_choices(choices);
  if (!text.ok()) return {Json::object(), text.status()};
  result.report = json_or_null(*text, {.depth = kMaxReportDepth});
  return result;
}

}  // namespace hstujit
