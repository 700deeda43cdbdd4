#include "operations/configs/shard.h"

#include <set>

namespace hstujit {

std::vector<Task> tasks_of_shard(std::vector<Task> tasks, const DeviceSpec& device, const Shard& shard) {
  if (shard.count <= 1) return tasks;
  const auto digest_of = [&](const Task& task) {
    return tuning_digest(tuning_key(*task.instance->spec, task.direction, device, task.bucket, task.restriction));
  };
  std::set<std::string> digests;
  for (const Task& task : tasks) digests.insert(digest_of(task));
  std::erase_if(tasks, [&](const Task& task) {
    const auto place = std::distance(digests.begin(), digests.find(digest_of(task)));
    return place % shard.count != shard.index;
  });
  return tasks;
}

}  // namespace hstujit
