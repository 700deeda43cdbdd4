#include "autotune_cache/records/record_room.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autotune_cache/records/merged_findings.h"
#include "autotune_cache/records/tuning_record_json.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"

namespace hstujit {
namespace {

// The size of a part of a file on one line.
struct Extent {
  size_t values = 0;
  size_t bytes = 0;

  Extent operator+(const Extent& other) const { return {values + other.values, bytes + other.bytes}; }
};

bool fits(const Extent& extent) { return extent.values <= kMaxJsonValues && extent.bytes <= kMaxRecordBytes; }

size_t count_values(const Json& json) {
  size_t count = 1;
  if (json.is_structured()) {
    for (const Json& part : json) count += count_values(part);
  }
  return count;
}

Extent extent_of(const Json& json) { return {count_values(json), dump_json(json).size() + 1}; }  // with a comma

// The size of a record without its findings; none when that alone is too much.
std::optional<Extent> extent_of_rest(const TuningRecord& record) {
  TuningRecord rest;
  rest.key = record.key;
  rest.workload = record.workload;
  rest.rows = record.rows;
  rest.winner = record.winner;
  rest.heuristic = record.heuristic;
  rest.environment = record.environment;
  const Result<std::string> text = format_record(rest);
  if (!text.ok()) return std::nullopt;
  Extent extent = extent_of(json_or_null(*text));
  // The figures of the winner and of the heuristic, which are copies of what a finding says.
  extent.values += 4;
  extent.bytes += 256;
  return extent;
}

// Without writing any of it: most records have a thousandth of what fits.
bool is_far_from_full(const TuningRecord& record) {
  size_t texts =
      record.winner.text().size() + record.heuristic.text().size() + record.workload.size() + record.key.spec.size();
  size_t parts = 16 + record.timed.size() + record.rejected.size() + record.environment.size();
  if (parts > kMaxRecordFindings) return false;
  for (const TimedCandidate& timing : record.timed) {
    texts += timing.config.text().size() + timing.workload.size() + timing.source_digest.size();
    texts += timing.baseline.config.text().size() + timing.baseline.source_digest.size();
  }
  for (const TuningRejection& rejection : record.rejected) {
    texts += rejection.config.text().size() + rejection.source_digest.size() + rejection.reason.size();
    texts += rejection.detail.size();
  }
  for (const auto& [name, value] : record.environment) texts += name.size() + value.size();
  // A byte of a text becomes at most six, such as \u0001, and every value of a config has a byte there.
  return 6 * texts + 512 * parts <= kMaxRecordBytes && texts + 16 * parts <= kMaxJsonValues;
}

struct Finding {
  bool timed = false;
  size_t index = 0;  // in its list
  Extent extent;
  int rank = 0;  // the least is worth most
};

class Ranking {
 public:
  Ranking(const TuningRecord& record, const TuningRecord& newer)
      : record_(record), winner_(record.winner), heuristic_(record.heuristic) {
    for (const TimedCandidate& timing : newer.timed) timed_.insert({timing.config, timing.workload});
    for (const TuningRejection& rejection : newer.rejected) rejected_.insert(rejection.config);
  }

  int rank(const TimedCandidate& timing) const {
    const RecordedConfig& config = timing.config;
    const bool decides = timing.workload == record_.workload;
    if (decides && (config == winner_ || config == heuristic_)) return 0;
    if (timed_.contains({config, timing.workload})) return 1;
    return decides ? 2 : 4;
  }
  int rank(const TuningRejection& rejection) const {
    if (rejected_.contains(rejection.config)) return 1;
    return rejection.is_permanent() ? 3 : 5;
  }

 private:
  const TuningRecord& record_;
  const RecordedConfig winner_, heuristic_;
  std::set<std::pair<RecordedConfig, std::string>> timed_;
  std::set<RecordedConfig> rejected_;
};

template <typename Candidate>
void keep_those(std::vector<Candidate>& list, const std::vector<bool>& stays) {
  size_t i = 0;
  std::erase_if(list, [&](const Candidate&) { return !stays[i++]; });
}

}  // namespace

size_t leave_out_what_does_not_fit(TuningRecord& merged, const TuningRecord& newer) {
  if (is_far_from_full(merged)) return 0;
  std::optional<Extent> used = extent_of_rest(merged);
  if (!used) {
    merged.environment = newer.environment;
    used = extent_of_rest(merged);
  }
  if (!used) return 0;  // format_record says what is wrong

  std::vector<Finding> all;
  Extent sum = *used;
  const auto add = [&](const auto& list, bool timed) {
    for (size_t i = list.size(); i-- > 0;) {
      const Result<Json> json = to_json(list[i]);
      all.push_back({timed, i, json.ok() ? extent_of(*json) : Extent()});
      sum = sum + all.back().extent;
    }
  };
  add(merged.timed, true);
  add(merged.rejected, false);
  if (all.size() <= kMaxRecordFindings && fits(sum)) return 0;

  const Ranking ranking(merged, newer);
  for (Finding& finding : all) {
    finding.rank =
        finding.timed ? ranking.rank(merged.timed[finding.index]) : ranking.rank(merged.rejected[finding.index]);
  }
  std::stable_sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) { return a.rank < b.rank; });

  std::vector<bool> timed_stays(merged.timed.size()), rejected_stays(merged.rejected.size());
  size_t kept = 0;
  for (const Finding& finding : all) {
    if (kept == kMaxRecordFindings || !fits(*used + finding.extent)) continue;
    used = *used + finding.extent;
    ++kept;
    (finding.timed ? timed_stays : rejected_stays)[finding.index] = true;
  }
  keep_those(merged.timed, timed_stays);
  keep_those(merged.rejected, rejected_stays);
  return all.size() - kept;
}

}  // namespace hstujit
