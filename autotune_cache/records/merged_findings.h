// Lists of findings of which a config's newest one counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "autotune_cache/records/tuning_record.h"

namespace hstujit {

// Whether one may be a newer finding of the other, as far as more than the config counts.
inline bool same_workload(const TimedCandidate& a, const TimedCandidate& b) { return a.workload == b.workload; }
inline bool same_workload(const TuningRejection&, const TuningRejection&) { return true; }

// A list of findings that others are merged into; both may have thousands. Erased ones stay until finish().
template <typename Candidate>
class MergedList {
 public:
  explicit MergedList(std::vector<Candidate>& list) : list_(list), erased_(list.size(), false) {
    for (size_t i = 0; i < list.size(); ++i) places_[list[i].config].push_back(i);
  }

  // In place of the one that it is a newer finding of, else at the end: the order of a list stays as it was.
  void replace_or_add(const Candidate& candidate) {
    std::vector<size_t>& places = places_[candidate.config];
    const auto older =
        std::find_if(places.begin(), places.end(), [&](size_t i) { return same_workload(list_[i], candidate); });
    if (older != places.end()) {
      list_[*older] = candidate;
      return;
    }
    places.push_back(list_.size());
    list_.push_back(candidate);
    erased_.push_back(false);
  }

  void erase(const RecordedConfig& config) {
    const auto found = places_.find(config);
    if (found == places_.end()) return;
    for (const size_t i : found->second) erased_[i] = true;
    places_.erase(found);
  }

  void finish() {
    size_t i = 0;
    std::erase_if(list_, [&](const Candidate&) { return erased_[i++]; });
  }

 private:
  std::vector<Candidate>& list_;
  std::vector<bool> erased_;
  std::map<RecordedConfig, std::vector<size_t>> places_;  // of each config
};

}  // namespace hstujit
