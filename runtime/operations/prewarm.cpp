// Fills the cache with the cubins that a config needs. Needs no GPU when the device is given.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <optional>
#include <set>
#include <thread>

#include "runtime/operations/operation.h"
#include "runtime/operations/shard.h"

namespace hstujit {

namespace {

struct Kernel {
  Task task;  // the first that asks for it
  KernelChoice choice;
  CompileRequest request;
  std::string digest;
  bool hit = false;
  Result<KernelBinaryPtr> binary = Status(Code::kInternal, "not compiled");
};

void build(Engine& engine, Kernel& kernel) {
  try {
    if (KernelBinaryPtr known = engine.kernels().find(kernel.request)) {
      kernel.hit = true;
      kernel.binary = std::move(known);
    } else {
      kernel.binary = engine.kernels().get(kernel.request, true);
    }
  } catch (const std::exception& error) {
    kernel.binary = Status(Code::kInternal, error.what());
  }
}

// Builds all of them on as many threads as compiles may be under way at once; progress comes from the calling thread.
void build_all(Engine& engine, std::vector<Kernel>& kernels, const OperationOptions& options) {
  const int most = engine.kernels().compile_jobs();
  const auto jobs =
      std::min(static_cast<size_t>(options.jobs > 0 ? std::min(options.jobs, most) : most), kernels.size());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<size_t> finished;
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < jobs; ++i) {
    threads.emplace_back([&] {
      for (size_t index = next++; index < kernels.size(); index = next++) {
        build(engine, kernels[index]);
        const std::lock_guard lock(mutex);
        finished.push_back(index);
        changed.notify_one();
      }
    });
  }
  for (size_t reported = 0; reported < kernels.size(); ++reported) {
    size_t index = 0;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return finished.size() > reported; });
      index = finished[reported];
    }
    report_progress(options, reported + 1, kernels.size(), kernels[index].task.label());
  }
}

}  // namespace

OperationResult prewarm(Engine& engine, const Config& config, const OperationOptions& options) {
  OperationResult result;
  const auto tasks = list_keys(engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  const auto device = engine.target(options.arch.c_str(), config.device, options.device);
  if (!device.ok()) return {Json::object(), device.status()};

  std::vector<Kernel> kernels;
  Json rows = Json::array();
  std::set<std::string> digests;
  for (const Task& task : tasks_of_shard(with_small_batches(*tasks, *device), *device, options.shard)) {
    Json row = task.to_json();
    const auto choice =
        choose_kernel(engine, *task.instance->spec, task.direction, *device, task.bucket, task.restriction);
    if (!choice.ok()) {
      row["error"] = error_json(choice.status());
      result.fail(choice.status().with_context(task.label()));
    } else {
      CompileRequest request{task.instance->spec, task.direction, choice->config, *device, engine.lineinfo()};
      const auto digest = artifact_digest(artifact_key(request));
      if (!digest.ok()) return {Json::object(), digest.status()};
      row["config"] = to_json(choice->config);
      row["tuned"] = choice->tuned;
      row["why"] = choice->why;
      row["key"] = *digest;
      if (digests.insert(*digest).second) {
        kernels.push_back({task, *choice, std::move(request), *digest, false, Status(Code::kInternal, "not compiled")});
      }
    }
    rows.push_back(std::move(row));
  }
  build_all(engine, kernels, options);

  int64_t compiled = 0, hits = 0, failed = 0;
  for (const Kernel& kernel : kernels) {
    ++(kernel.hit ? hits : kernel.binary.ok() ? compiled : failed);
    if (!kernel.binary.ok()) result.fail(kernel.binary.status().with_context(kernel.task.label()));
    for (Json& row : rows) {
      if (row.value("key", "") != kernel.digest) continue;
      row["outcome"] = kernel.hit ? "hit" : kernel.binary.ok() ? "compiled" : "failed";
      if (!kernel.binary.ok()) {
        row["error"] = error_json(kernel.binary.status());
        continue;
      }
      const KernelBinary& binary = **kernel.binary;
      row["kernel"] = binary.info.kernel;
      row["cubin_bytes"] = binary.cubin.size();
      row["resources"] = Json::parse(binary.info.resources, nullptr, false);
      if (!kernel.hit) row["compile_ms"] = binary.compile_ms;
    }
  }
  result.report = {{"device", to_json(*device)}, {"kernels", kernels.size()},   {"compiled", compiled}, {"hits", hits},
                   {"failed", failed},           {"instances", std::move(rows)}};
  return result;
}

}  // namespace hstujit
