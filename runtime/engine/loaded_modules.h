// LoadedModules: the modules of an engine, loaded once per context, in bounded number.
//
// The first modules of a context stay as long as the engine, since a CUDA graph may hold their kernels and launches
// leave no trace of them. There may be as many of these as few programs ever load. Those that come later are unloaded,
// the least recently loaded first, once no op has them, their launches are done, and no graph has captured one
// (runtime/driver/launch_marks.h).
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/driver/module.h"
#include "runtime/engine/kernel_cache.h"

namespace hstujit {

class LoadedModules {
 public:
  struct Limits {
    size_t staying = 1024;  // modules of a context that are never unloaded
    size_t idle = 128;      // others that no op has, of all contexts
  };

  explicit LoadedModules(const Limits& limits) : limits_(limits) {}

  // The kernels of `binary`, which are those of `plan`, in the current context, which is `context`. May unload others.
  Result<ModulePtr> get(const CudaDriverPtr& driver, const KernelBinary& binary, const DeviceContext& context,
                        const LaunchPlan& plan);

  size_t size() const;

 private:
  using Key = std::pair<std::string, unsigned long long>;  // digest and context

  struct Entry {
    ModulePtr module;
    std::list<Key>::iterator place;  // in passing_; its end for a module that stays
  };

  // Takes modules out until no more than `idle` are left that no op has, or may not be unloaded yet.
  std::list<ModulePtr> take_idle();

  const Limits limits_;
  mutable std::mutex mutex_;  // of what follows; never held over a load or a launch
  std::map<Key, Entry> modules_;
  std::map<unsigned long long, size_t> staying_;  // by context: how many modules stay
  std::list<Key> passing_;                        // the others, the least recently asked for first
};

}  // namespace hstujit
