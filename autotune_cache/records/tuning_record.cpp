#include "autotune_cache/records/tuning_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "autotune_cache/records/merged_findings.h"
#include "autotune_cache/records/record_room.h"
#include "compiler/support/hash.h"
#include "compiler/support/integers.h"

namespace hstujit {
namespace {

template <typename Candidates>
auto find_config(Candidates& candidates, const RecordedConfig& config) {
  return std::find_if(candidates.begin(), candidates.end(),
                      [&](const auto& candidate) { return candidate.config == config; });
}

template <typename Candidates>
auto find_timing(Candidates& candidates, const RecordedConfig& config, std::string_view workload) {
  return std::find_if(candidates.begin(), candidates.end(), [&](const TimedCandidate& candidate) {
    return candidate.workload == workload && candidate.config == config;
  });
}

}  // namespace

bool TuningRejection::is_permanent() const {
  return std::find(std::begin(kTransientReasons), std::end(kTransientReasons), reason) == std::end(kTransientReasons);
}

std::string tuning_digest(const TuningKey& key) {
  KeyHasher hasher("hstujit-tuning");
  hasher.add("schema", kTuningSchema);
  hasher.add("op", key.op).add("spec", key.spec).add("direction", key.direction).add("device", key.device);
  hasher.add("arch", key.arch).add("sm_count", key.sm_count).add("bucket", key.bucket);
  // A field that is added later leaves the digest of every key that does not have it.
  if (const std::string_view field = key_field(key.batch_class); !field.empty()) hasher.add(field, 1);
  if (key.deterministic) hasher.add("deterministic", 1);
  return hasher.finish();
}

std::vector<TimedCandidate> TuningRecord::timings() const {
  std::vector<TimedCandidate> list;
  std::copy_if(timed.begin(), timed.end(), std::back_inserter(list),
               [this](const TimedCandidate& candidate) { return candidate.workload == workload; });
  return list;
}

const TimedCandidate* TuningRecord::timing(const RecordedConfig& config, std::string_view on_workload) const {
  const auto found = find_timing(timed, config, on_workload);
  return found != timed.end() ? &*found : nullptr;
}

const TimedCandidate* TuningRecord::valid_timing(const RecordedConfig& config, std::string_view source_digest,
                                                 std::string_view on_workload) const {
  const TimedCandidate* const found = timing(config, on_workload);
  return found != nullptr && found->source_digest == source_digest ? found : nullptr;
}

const TuningRejection* TuningRecord::valid_rejection(const RecordedConfig& config,
                                                     std::string_view source_digest) const {
  const auto found = find_config(rejected, config);
  const bool holds = found != rejected.end() && !source_digest.empty() && found->source_digest == source_digest &&
                     found->is_permanent();
  return holds ? &*found : nullptr;
}

namespace {

// TuningRecord::drift() of timings on one workload, among which no list is searched: a record may have so many that a
// search for each would take minutes.
class Drifts {
 public:
  Drifts(const std::vector<TimedCandidate>& timed, const std::string& workload) {
    for (const TimedCandidate& timing : timed) {
      if (timing.workload != workload) continue;
      times_.try_emplace(timing.config, &timing);
      const TimingBaseline& baseline = timing.baseline;
      firsts_.try_emplace({baseline.config, baseline.source_digest}, baseline.median_us);
    }
  }

  double of(const TimedCandidate& timing) const {
    const TimingBaseline& baseline = timing.baseline;
    if (baseline.config.empty()) return 1;
    const RecordedConfig& config = baseline.config;
    const auto latest = times_.find(config);
    if (latest != times_.end() && latest->second->source_digest == baseline.source_digest)
      return latest->second->median_us / baseline.median_us;
    // Its own time has been ended or is of another source by now: any scale will do that all of its timings share.
    const auto first = firsts_.find({config, baseline.source_digest});
    return first != firsts_.end() ? first->second / baseline.median_us : 1;
  }

 private:
  std::map<RecordedConfig, const TimedCandidate*> times_;
  std::map<std::pair<RecordedConfig, std::string>, double> firsts_;  // of each baseline
};

}  // namespace

double TuningRecord::drift(const TimedCandidate& timing) const { return Drifts(timed, timing.workload).of(timing); }

std::vector<TimedCandidate> TuningRecord::comparable_timings() const {
  std::vector<TimedCandidate> list = timings();
  const Drifts drifts(timed, workload);
  for (TimedCandidate& timing : list) {
    const double drift = drifts.of(timing);
    timing.median_us *= drift;
    timing.spread_us *= drift;
  }
  return list;
}

RecordedConfig select_winner(const TuningRecord& record, const TimingFilter& competes) {
  std::vector<TimedCandidate> timings = record.comparable_timings();
  if (competes) std::erase_if(timings, [&](const TimedCandidate& timing) { return !competes(timing); });
  const auto best = std::min_element(timings.begin(), timings.end(),
                                     [](const auto& a, const auto& b) { return a.median_us < b.median_us; });
  if (best == timings.end()) return {};
  const auto heuristic = find_config(timings, record.heuristic);
  if (heuristic != timings.end() && heuristic->median_us - best->median_us <= heuristic->spread_us + best->spread_us)
    return heuristic->config;
  return best->config;
}

namespace {

// A workload decides over one with more rows as long as these are at most so many times its own. Launches of fewer
// hardly differ: layer norms of 4,096 rows of 512 take 1.5 % less with their own winner, on an H200, which takes 11 %
// longer on 131,072 rows.
constexpr int64_t kFewRows = 4;

// Whether the older one's workload goes on deciding.
bool has_many_more_rows(const TuningRecord& older, const TuningRecord& newer) {
  return newer.rows > 0 && newer.rows < ceil_div(older.rows, kFewRows);
}

}  // namespace

Result<TuningRecord> merge_records(const TuningRecord& older, const TuningRecord& newer, size_t* left_out) {
  if (!(older.key == newer.key))
    return Status(Code::kInvalidArgument, fmt::format("tuning records {} and {} have different keys; only records of "
                                                      "one key can be merged",
                                                      tuning_digest(older.key), tuning_digest(newer.key)));
  TuningRecord merged = older;
  MergedList timed(merged.timed);
  MergedList rejected(merged.rejected);
  for (const TimedCandidate& candidate : newer.timed) {
    rejected.erase(candidate.config);
    timed.replace_or_add(candidate);
  }
  for (const TuningRejection& candidate : newer.rejected) {
    if (candidate.is_permanent()) timed.erase(candidate.config);
    rejected.replace_or_add(candidate);
  }
  timed.finish();
  rejected.finish();
  for (const auto& [name, value] : newer.environment) merged.environment[name] = value;
  // As long as a time of it is left.
  const bool few_rows = has_many_more_rows(older, newer), stays = few_rows && !merged.timings().empty();
  if (!stays && !newer.workload.empty()) {
    merged.workload = newer.workload;
    // The next one is not measured by fewer: else workloads a quarter as large each would hand a key on to any.
    merged.rows = newer.rows > 0 && !few_rows ? std::max(older.rows, newer.rows) : newer.rows;
  }
  if (!stays && !newer.heuristic.empty()) merged.heuristic = newer.heuristic;
  const RecordedConfig& winner = stays ? older.winner : newer.winner;
  const bool chosen = !winner.empty() && merged.timing(winner) != nullptr;
  merged.winner = chosen ? winner : select_winner(merged);
  const size_t count = leave_out_what_does_not_fit(merged, newer);
  if (count > 0 && merged.timing(merged.winner) == nullptr) merged.winner = select_winner(merged);
  if (left_out != nullptr) *left_out = count;
  return merged;
}

bool contains(const TuningRecord& whole, const TuningRecord& part) {
  using Finding = std::tuple<RecordedConfig, std::string, std::string>;
  std::set<Finding> timed, rejected;
  for (const TimedCandidate& candidate : whole.timed) {
    timed.insert({candidate.config, candidate.workload, candidate.source_digest});
  }
  for (const TuningRejection& candidate : whole.rejected) {
    rejected.insert({candidate.config, candidate.reason, candidate.source_digest});
  }
  return std::ranges::all_of(part.timed,
                             [&](const TimedCandidate& candidate) {
                               return timed.contains({candidate.config, candidate.workload, candidate.source_digest});
                             }) &&
         std::ranges::all_of(part.rejected, [&](const TuningRejection& candidate) {
           return rejected.contains({candidate.config, candidate.reason, candidate.source_digest});
         });
}

}  // namespace hstujit
