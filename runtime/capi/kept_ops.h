// The ops that the calls of one context launch, in bounded number.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/dispatch/op.h"

struct hstujit_op;

namespace hstujit::capi {

using SharedOp = std::shared_ptr<hstujit_op>;

// Ops by what they compute. The least recently used one is forgotten where there are too many; calls that launch it
// keep it. Any thread may use it.
class KeptOps {
 public:
  static constexpr size_t kMost = 1024;  // one of the host backend takes some 0.9 MiB

  // The op of these options, which are `key`.
  Result<SharedOp> get(const std::string& key, const EnginePtr& engine, OpOptions options);

 private:
  using Used = std::list<std::pair<std::string, SharedOp>>;  // the latest one first

  SharedOp find(const std::string& key);

  std::mutex mutex_;
  Used used_;
  std::unordered_map<std::string, Used::iterator> by_key_;
};

}  // namespace hstujit::capi
