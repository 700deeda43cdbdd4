#include "runtime/engine/loaded_modules.h"

#include <atomic>

namespace hstujit {

Result<ModulePtr> LoadedModules::get(const CudaDriverPtr& driver, const KernelBinary& binary,
                                     const DeviceContext& context, const LaunchPlan& plan) {
  const Key key(binary.digest, context.id);
  Stay stay = Stay::kAsContext;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = modules_.find(key); found != modules_.end()) {
      Entry& entry = found->second;
      if (entry.place != passing_.end()) passing_.splice(passing_.end(), passing_, entry.place);
      return entry.module;
    }
    if (staying_[context.id] >= limits_.staying) stay = Stay::kUntilLaunched;
  }
  HSTUJIT_ASSIGN_OR_RETURN(ModulePtr loaded, Module::load(driver, context, binary.cubin, plan, stay));
  std::list<ModulePtr> unloaded;  // after the lock
  const std::lock_guard lock(mutex_);
  const auto [found, added] = modules_.try_emplace(key);
  Entry& entry = found->second;
  // Another thread may have loaded it meanwhile: then that one is used, and this one is unloaded.
  if (!added) return entry.module;
  entry.module = loaded;
  entry.place = passing_.end();
  if (stay == Stay::kAsContext) {
    ++staying_[context.id];
  } else {
    entry.place = passing_.insert(passing_.end(), key);
  }
  unloaded = take_idle();
  return loaded;
}

std::list<ModulePtr> LoadedModules::take_idle() {
  // Under the lock nobody else gets a module that the map alone has.
  const auto is_idle = [](const Entry& entry) { return entry.module.use_count() == 1; };
  size_t idle = 0;
  for (const Key& key : passing_) idle += is_idle(modules_.at(key)) ? 1 : 0;
  std::list<ModulePtr> taken;
  for (auto place = passing_.begin(); place != passing_.end() && idle > limits_.idle;) {
    const auto found = modules_.find(*place);
    const bool is_candidate = is_idle(found->second);
    // Marks that a thread left before it gave the module back are read after use_count() was.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (!is_candidate || !found->second.module->may_unload()) {
      ++place;
      continue;
    }
    taken.push_back(std::move(found->second.module));
    modules_.erase(found);
    place = passing_.erase(place);
    --idle;
  }
  return taken;
}

size_t LoadedModules::size() const {
  const std::lock_guard lock(mutex_);
  return modules_.size();
}

}  // namespace hstujit
