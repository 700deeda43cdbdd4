// The kernels of an op that are ready, by context and bucket: launches look them up without a lock while others are
// added.
//
// A hash table of pointers that only grows. Adding stores one pointer; a full table is replaced by one of twice the
// size, and since a launch may still be reading the old one, it is kept. All of them together have less than twice the
// slots of the last: what is prepared costs some 100 bytes, however many lengths there are.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/dispatch/batch_classes.h"
#include "runtime/launch/launcher.h"

namespace hstujit {

struct Prepared {
  cuda::Context context = nullptr;
  unsigned long long context_id = 0;
  int64_t bucket = 0;
  BatchClasses classes;
  std::array<LauncherPtr, kBatchClasses> launchers;  // by class; null for those that the bucket does not have

  const LauncherPtr& launcher_of(BatchClass batch_class) const { return launchers[static_cast<size_t>(batch_class)]; }
};

class PreparedTable {
 public:
  // By identity and not by address, which a new context may have after another one was destroyed. Any thread, any time.
  const Prepared* find(unsigned long long context_id, int64_t bucket) const;

  // The rest is for one thread at a time.

  // One that is there already stays. Those of a context that was destroyed, as the new one of its address shows, are
  // forgotten with their launchers.
  void add(Prepared prepared);

  // A launcher of this module, whatever its bucket is: buckets with one winner share it. Null when there is none.
  LauncherPtr launcher_of(const Module& module) const;

  size_t slots() const;  // of all tables, those that are only kept for readers too

 private:
  struct Slots {
    explicit Slots(size_t count) : pointers(count) {}
    void insert(const Prepared* prepared);
    std::vector<std::atomic<const Prepared*>> pointers;  // a power of two, at least half of them null
  };

  void forget_destroyed(const Prepared& newer);

  std::atomic<const Slots*> current_{nullptr};
  std::vector<std::unique_ptr<Slots>> tables_;
  std::deque<Prepared> entries_;  // in the order of their addition; addresses stay
};

}  // namespace hstujit
