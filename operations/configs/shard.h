// One process's part of the work of many.
#pragma once

#include <vector>

#include "operations/configs/operation.h"

namespace hstujit {

// The tasks whose tuning keys belong to `shard`. The distinct keys, in the order of their digests, go to the shards in
// turn: every process finds the same division by itself, a key never belongs to two shards, and no shard has more than
// one key above another.
std::vector<Task> tasks_of_shard(std::vector<Task> tasks, const DeviceSpec& device, const Shard& shard);

}  // namespace hstujit
