// --shard: which part of the work is this process's.
#pragma once

#include <functional>
#include <string>

#include "compiler/support/status.h"

namespace hstujit {

struct ShardOption {
  int index = 0;
  int count = 1;
};

// "2/8": the third of eight; "auto": as the launcher's variables say (torchrun, Open MPI, PMI, Slurm); "auto/8": the
// same for a launcher that tells only the index (a Kubernetes indexed job). `variable` gives the value of an
// environment variable, "" when unset. kInvalidArgument with what is allowed, or with the variables that were looked
// for.
Result<ShardOption> parse_shard(const std::string& text, const std::function<std::string(const char*)>& variable);

}  // namespace hstujit
