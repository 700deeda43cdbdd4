#include <fmt/format.h>

#include <algorithm>

#include "operations/tuning/tuner/tuning_run.h"

namespace hstujit {

Status TuningRun::consider(PoolResult result) {
  if (result.known == PoolResult::Known::kNotReached) return {};
  begin(result);
  if (result.known != PoolResult::Known::kNothing) {
    report_.resumed += result.known == PoolResult::Known::kTimed ? 1 : 0;
    return {};
  }
  HSTUJIT_ASSIGN_OR_RETURN(std::optional<Entry> entry, admit(std::move(result), false));
  if (!entry) return findings_.checkpoint();
  const std::vector<int> pair = {baseline_->number, entry->number};
  auto samples = time(pair, options_.first_repeats);
  const auto ratio = [&] { return summarise((*samples)[1]).median_ms / summarise((*samples)[0]).median_ms; };
  // In every repeat: something else on the device may have delayed a launch.
  const auto hopeless = [&] {
    const double worst = best_ratio() * options_.hopeless;
    return std::ranges::equal((*samples)[1], (*samples)[0],
                              [worst](double mine, double baseline) { return mine > baseline * worst; });
  };
  if (samples.ok() && !hopeless()) samples = time(pair, options_.quick_repeats);
  if (!samples.ok()) {
    // The candidate's fault also when the launch was the baseline's, which ran well until this one's came between.
    HSTUJIT_RETURN_IF_ERROR(fail(*entry, samples.status(), "failed"));
    return findings_.checkpoint();
  }
  ++report_.timed;
  entry->ratio = ratio();
  engine_.log().event(LogCategory::kTune, "timed",
                      {{"config", describe(candidates_[entry->index].config)},
                       {"ms", summarise((*samples)[1]).median_ms},
                       {"ratio", entry->ratio}});
  add_timing(*entry, (*samples)[1], (*samples)[0]);
  rank(std::move(*entry));
  return findings_.checkpoint();
}

void TuningRun::rank(Entry entry) {
  if (entry.ratio > best_ratio() * options_.no_finalist) return bench_->unload(entry.number);
  const auto place = std::upper_bound(finalists_.begin(), finalists_.end(), entry,
                                      [](const Entry& a, const Entry& b) { return a.ratio < b.ratio; });
  finalists_.insert(place, std::move(entry));
  if (static_cast<int>(finalists_.size()) <= options_.finalists) return;
  if (finalists_.back().number != kNotLoaded) bench_->unload(finalists_.back().number);
  finalists_.pop_back();
}

// A finalist that fails is left out, and the others meet again.
Status TuningRun::time_finalists() {
  while (!ended()) {
    const auto unloaded = std::find_if(finalists_.begin(), finalists_.end(),
                                       [](const Entry& entry) { return entry.number == kNotLoaded; });
    if (unloaded != finalists_.end()) {
      const Result<int> number = bench_->load({candidates_[unloaded->index].config, unloaded->binary.cubin});
      if (number.ok()) {
        unloaded->number = *number;
      } else {
        HSTUJIT_RETURN_IF_ERROR(drop_finalist(unloaded, number.status(), "load"));
      }
      continue;
    }
    std::vector<int> numbers = {baseline_->number};
    for (const Entry& entry : finalists_) numbers.push_back(entry.number);
    const auto samples = time(numbers, options_.final_repeats);
    if (samples.ok()) {
      add_timing(*baseline_, (*samples)[0], (*samples)[0]);
      for (size_t i = 0; i < finalists_.size(); ++i) add_timing(finalists_[i], (*samples)[i + 1], (*samples)[0]);
      return {};
    }
    const auto culprit = std::find_if(finalists_.begin(), finalists_.end(),
                                      [this](const Entry& entry) { return entry.number == bench_->culprit(); });
    if (culprit == finalists_.end()) {
      end(fmt::format("the baseline failed among the finalists, whose first times stand: {}",
                      samples.status().message()));
    } else {
      HSTUJIT_RETURN_IF_ERROR(drop_finalist(culprit, samples.status(), "failed"));
    }
  }
  return {};
}

Status TuningRun::drop_finalist(std::vector<Entry>::iterator place, const Status& failure, std::string reason) {
  const Entry entry = std::move(*place);
  finalists_.erase(place);
  return fail(entry, failure, std::move(reason));
}

}  // namespace hstujit
