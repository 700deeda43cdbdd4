// Fills the cache with the cubins that a config needs, or says which it lacks. Needs no GPU when the device is given.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>

#include "compiler/support/json.h"
#include "compiler/support/memory.h"
#include "compiler/support/threads.h"
#include "operations/configs/operation.h"
#include "operations/configs/shard.h"
#include "runtime/dispatch/kernel_supply.h"

namespace hstujit {

namespace {

// Outcomes, as reports name them.
constexpr const char* kOutcomeHit = "hit";
constexpr const char* kOutcomeCompiled = "compiled";
constexpr const char* kOutcomeMissing = "missing";
constexpr const char* kOutcomeFailed = "failed";

// A key and, when it is done, its kernel.
struct PrewarmKey {
  Task task;
  size_t row = 0;  // of the report
  KernelChoice choice;
  Result<SuppliedKernel> kernel = Status(Code::kInternal, "not compiled");
};

// Keys whose choices have one kernel: one thread works on them, since the others would wait for it.
using KeyGroup = std::vector<PrewarmKey>;

void supply_group(Engine& engine, const DeviceSpec& device, KeyGroup& group, Supply supply,
                  const Cancellation& cancellation) {
  for (PrewarmKey& wanted : group) {
    if (cancellation.requested()) return;
    const Task& task = wanted.task;
    try {
      wanted.kernel = supply_kernel(engine, task.instance->spec, task.direction, device, task.bucket, task.restriction,
                                    wanted.choice, supply);
    } catch (const std::bad_alloc&) {
      wanted.kernel = out_of_memory();
    } catch (const std::exception& error) {
      wanted.kernel = Status(Code::kInternal, error.what());
    }
  }
}

// All of them on as many threads as compiles may be under way at once; progress comes from the calling thread. Once the
// operation is cancelled, no further compile begins.
void supply_all(Engine& engine, const DeviceSpec& device, std::vector<KeyGroup>& groups, Supply supply,
                const OperationOptions& options) {
  const int max = engine.kernels().compile_jobs();
  const auto jobs = std::min(static_cast<size_t>(options.jobs > 0 ? std::min(options.jobs, max) : max), groups.size());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<size_t> finished;
  finished.reserve(groups.size());  // an exception would end a thread, and the process with it
  const auto work = [&](size_t) {
    for (size_t index = next++; index < groups.size(); index = next++) {
      // A cancelled group counts as finished, so that nobody waits for it.
      supply_group(engine, device, groups[index], supply, options.cancellation);
      const std::lock_guard lock(mutex);
      finished.push_back(index);
      changed.notify_one();
    }
  };
  const std::vector<std::jthread> threads = start_threads(jobs, work);
  if (threads.empty()) work(0);
  for (size_t reported = 0; reported < groups.size(); ++reported) {
    size_t index = 0;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return finished.size() > reported; });
      index = finished[reported];
    }
    if (options.cancellation.requested()) continue;
    report_progress(options, reported + 1, groups.size(), groups[index].front().task.label());
  }
}

Result<std::string> kernel_digest(Engine& engine, const Task& task, const DeviceSpec& device,
                                  const KernelConfig& config) {
  return artifact_digest(artifact_key({task.instance->spec, task.direction, config, device, engine.lineinfo()}));
}

// Adds what is known of the key's kernel to its row. The status of a key without one.
Status write_row(Engine& engine, const PrewarmKey& wanted, const std::string& digest, Json& row) {
  const auto write = [&](const KernelChoice& choice) {
    row["config"] = to_json(choice.config);
    row["describe"] = describe(choice.config);
    choice.write(row);
    row["why"] = choice.why;
    row["key"] = digest;
  };
  if (!wanted.kernel.ok()) {
    write(wanted.choice);
    row["outcome"] = wanted.kernel.status().code() == Code::kCacheMiss ? kOutcomeMissing : kOutcomeFailed;
    return wanted.kernel.status();
  }
  const SuppliedKernel& kernel = *wanted.kernel;
  write(kernel.choice);
  if (kernel.binary == nullptr) {
    row["outcome"] = kOutcomeMissing;
    return engine.kernels().missing(kernel.request);
  }
  const KernelBinary& binary = *kernel.binary;
  row["outcome"] = kernel.hit ? kOutcomeHit : kOutcomeCompiled;
  row["kernel"] = binary.info.kernel;
  row["cubin_bytes"] = binary.cubin.size();
  row["resources"] = json_or_null(binary.info.resources);
  if (!kernel.hit) row["compile_ms"] = binary.compile_ms;
  return {};
}

// Results of a prewarm so far. Rows are the report's, one for each key.
struct Prewarmed {
  std::vector<KeyGroup> groups;
  Json rows = Json::array();
  int64_t without_kernel = 0;                   // keys that have not even a choice
  std::map<std::string, std::string> outcomes;  // by digest of the kernel
};

// Chooses a kernel for each task. Fails where a key cannot be told; what fails for one task is an error of its row.
Status choose_all(Engine& engine, const std::vector<Task>& tasks, const DeviceSpec& device,
                  const OperationOptions& options, Prewarmed& found, OperationResult& result) {
  std::map<std::string, size_t> group_of;  // by digest of the choice's kernel
  TaskProgress progress(options, "choose", tasks.size());
  for (const Task& task : tasks) {
    if (options.cancellation.requested()) return options.cancellation.status("prewarm");
    Json row = task.to_json();
    const auto choice = within_memory("its kernel", [&] {
      return choose_kernel(engine, *task.instance->spec, task.direction, device, task.bucket, task.restriction,
                           options.check ? Keep::kNothing : Keep::kFound);
    });
    progress.done(task);
    if (!choice.ok()) {
      row["outcome"] = kOutcomeFailed;
      ++found.without_kernel;
      row["error"] = error_json(choice.status());
      result.fail(choice.status().with_context(task.label()));
    } else {
      HSTUJIT_ASSIGN_OR_RETURN(const std::string digest, kernel_digest(engine, task, device, choice->config));
      const auto [place, added] = group_of.emplace(digest, found.groups.size());
      if (added) found.groups.emplace_back();
      found.groups[place->second].push_back(
          {task, found.rows.size(), *choice, Status(Code::kInternal, "not compiled")});
    }
    found.rows.push_back(std::move(row));
  }
  return {};
}

// Fills the rows of keys whose kernels were supplied.
Status write_rows(Engine& engine, const DeviceSpec& device, Prewarmed& found, OperationResult& result) {
  for (const KeyGroup& group : found.groups) {
    for (const PrewarmKey& wanted : group) {
      const KernelConfig& chosen = wanted.kernel.ok() ? wanted.kernel->choice.config : wanted.choice.config;
      HSTUJIT_ASSIGN_OR_RETURN(const std::string digest, kernel_digest(engine, wanted.task, device, chosen));
      Json& row = found.rows[wanted.row];
      if (const Status status = write_row(engine, wanted, digest, row); !status.ok()) {
        row["error"] = error_json(status);
        result.fail(status.with_context(wanted.task.label()));
      }
      std::string& outcome = found.outcomes[digest];
      if (outcome != kOutcomeCompiled) outcome = row["outcome"].get<std::string>();
    }
  }
  return {};
}

// Shares outcomes among keys with one kernel: one has compiled it for all, in a time that counts once.
void share_outcomes(Prewarmed& found) {
  std::set<std::string> timed;
  for (Json& row : found.rows) {
    if (row.value("outcome", "") == kOutcomeHit) row["outcome"] = found.outcomes[row["key"].get<std::string>()];
    if (row.contains("compile_ms") && !timed.insert(row["key"].get<std::string>()).second) row.erase("compile_ms");
  }
}

Json report_of(const DeviceSpec& device, bool checked, Prewarmed found) {
  const auto count = [&](std::string_view outcome) {
    return std::count_if(found.outcomes.begin(), found.outcomes.end(),
                         [&](const auto& item) { return item.second == outcome; });
  };
  return {{"device", to_json(device)},
          {"checked", checked},
          {"kernels", found.outcomes.size()},
          {"compiled", count(kOutcomeCompiled)},
          {"hits", count(kOutcomeHit)},
          {"missing", count(kOutcomeMissing)},
          {"failed", count(kOutcomeFailed) + found.without_kernel},
          {"without_kernel", found.without_kernel},
          {"instances", std::move(found.rows)}};
}

}  // namespace

OperationResult prewarm(Engine& engine, const Config& config, const OperationOptions& options) {
  const auto tasks = list_keys(engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  const auto device = engine.target(options.arch.c_str(), config.device, options.device);
  if (!device.ok()) return {Json::object(), device.status()};

  OperationResult result;
  Prewarmed found;
  const std::vector<Task> all = tasks_of_shard(with_batch_classes(*tasks, *device), *device, options.shard);
  if (const Status status = choose_all(engine, all, *device, options, found, result); !status.ok())
    return {Json::object(), status};
  supply_all(engine, *device, found.groups, options.check ? Supply::kLook : Supply::kMake, options);
  if (options.cancellation.requested()) return {Json::object(), options.cancellation.status("prewarm")};
  if (const Status status = write_rows(engine, *device, found, result); !status.ok()) return {Json::object(), status};
  share_outcomes(found);
  result.report = report_of(*device, options.check, std::move(found));
  fail_for_what_is_not_kept(engine, result);
  return result;
}

}  // namespace hstujit
