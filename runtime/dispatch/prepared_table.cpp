#include "runtime/dispatch/prepared_table.h"

namespace hstujit {

namespace {

constexpr size_t kFirstSlots = 16;

size_t first_slot(unsigned long long context_id, int64_t bucket, size_t count) {
  // Both are small numbers that lie close together; the multiplication spreads them over the upper half.
  const uint64_t mixed = (static_cast<uint64_t>(bucket) * 31 + context_id) * 0x9E3779B97F4A7C15U;
  return static_cast<size_t>(mixed >> 32) & (count - 1);
}

}  // namespace

const Prepared* PreparedTable::find(unsigned long long context_id, int64_t bucket) const {
  const Slots* const table = current_.load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  const size_t count = table->pointers.size();
  for (size_t slot = first_slot(context_id, bucket, count);; slot = (slot + 1) & (count - 1)) {
    const Prepared* const prepared = table->pointers[slot].load(std::memory_order_acquire);
    if (prepared == nullptr) return nullptr;
    if (prepared->context_id == context_id && prepared->bucket == bucket) return prepared;
  }
}

void PreparedTable::Slots::insert(const Prepared* prepared) {
  const size_t count = pointers.size();
  size_t slot = first_slot(prepared->context_id, prepared->bucket, count);
  while (pointers[slot].load(std::memory_order_relaxed) != nullptr) slot = (slot + 1) & (count - 1);
  pointers[slot].store(prepared, std::memory_order_release);
}

void PreparedTable::forget_destroyed(const Prepared& newer) {
  for (Prepared& entry : entries_) {
    // A look-up compares the identity and the bucket of such an entry, and nobody launches in its context.
    if (entry.context != newer.context || entry.context_id == newer.context_id) continue;
    entry.launchers = {};
  }
}

void PreparedTable::add(Prepared prepared) {
  if (find(prepared.context_id, prepared.bucket) != nullptr) return;
  forget_destroyed(prepared);
  const Prepared& entry = entries_.emplace_back(std::move(prepared));
  if (!tables_.empty() && 2 * entries_.size() <= tables_.back()->pointers.size()) {
    tables_.back()->insert(&entry);
    return;
  }
  auto next = std::make_unique<Slots>(tables_.empty() ? kFirstSlots : 2 * tables_.back()->pointers.size());
  for (const Prepared& known : entries_) next->insert(&known);
  tables_.push_back(std::move(next));
  current_.store(tables_.back().get(), std::memory_order_release);
}

LauncherPtr PreparedTable::launcher_of(const Module& module) const {
  for (const Prepared& entry : entries_) {
    for (const LauncherPtr& launcher : entry.launchers) {
      if (launcher && &launcher->module() == &module) return launcher;
    }
  }
  return nullptr;
}

size_t PreparedTable::slots() const {
  size_t total = 0;
  for (const auto& table : tables_) total += table->pointers.size();
  return total;
}

}  // namespace hstujit
