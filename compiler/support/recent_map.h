// RecentMap: a map of bounded size, which forgets the entry that was used least recently.
#pragma once

#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

namespace hstujit {

// Is used by one thread at a time: find() changes the order of entries, too.
template <typename Key, typename Value>
class RecentMap {
 public:
  // `most`: how many entries it has at most, 1 or more.
  explicit RecentMap(size_t most) : most_(most) {}

  // The value of the key, until the next call of put() or erase(); null where there is none. Counts as a use.
  Value* find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  // Puts the value in place of an earlier one of the key.
  void put(const Key& key, Value value) {
    if (Value* const known = find(key)) {
      *known = std::move(value);
      return;
    }
    entries_.emplace_front(key, std::move(value));
    places_.emplace(key, entries_.begin());
    if (entries_.size() <= most_) return;
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }

  void erase(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return;
    entries_.erase(found->second);
    places_.erase(found);
  }

  size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<Key, Value>>;

  size_t most_;
  Entries entries_;  // the most recently used one first
  std::unordered_map<Key, typename Entries::iterator> places_;
};

}  // namespace hstujit
