#include "runtime/capi/kept_ops.h"

#include "runtime/capi/boundary.h"

namespace hstujit::capi {

SharedOp KeptOps::find(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  used_.splice(used_.begin(), used_, found->second);
  return found->second->second;
}

Result<SharedOp> KeptOps::get(const std::string& key, const EnginePtr& engine, OpOptions options) {
  {
    const std::lock_guard lock(mutex_);
    if (SharedOp found = find(key)) return found;
  }
  HSTUJIT_ASSIGN_OR_RETURN(auto op, Op::create(engine, std::move(options)));
  auto made = std::make_shared<hstujit_op>(hstujit_op{std::move(op)});
  Used forgotten;  // goes after the lock: the last user of an op unloads its kernels
  const std::lock_guard lock(mutex_);
  if (SharedOp found = find(key)) return found;  // another thread was first
  used_.emplace_front(key, made);
  by_key_[key] = used_.begin();
  if (used_.size() > kMost) {
    by_key_.erase(used_.back().first);
    forgotten.splice(forgotten.begin(), used_, std::prev(used_.end()));
  }
  return made;
}

}  // namespace hstujit::capi
