#include "runtime/capi/kept_ops.h"

#include "compiler/support/json.h"
#include "runtime/capi/boundary.h"

namespace hstujit::capi {

namespace {

// Every op of a call is logged once, so that a log has the instances that a model calls.
void log_op(const EnginePtr& engine, const hstujit::Op& op, const OpOptions& options) {
  if (engine == nullptr) return;
  engine->log().event(LogCategory::kDispatch, "op",
                      {{"op", std::string(op.spec().op())},
                       {"direction", std::string(to_string(op.direction()))},
                       {"backend", options.backend == Backend::kHost ? "host" : "cuda"},
                       {"deterministic", options.restriction.deterministic ? "1" : "0"},
                       {"spec", dump_json(op.spec().to_json())}});
}

}  // namespace

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
  HSTUJIT_ASSIGN_OR_RETURN(auto op, Op::create(engine, options));
  log_op(engine, *op, options);
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
