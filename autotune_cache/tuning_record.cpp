#include "autotune_cache/tuning_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "autotune_cache/checked_json.h"
#include "autotune_cache/tuning_key_json.h"
#include "compiler/support/config_aliases.h"
#include "compiler/support/hash.h"
#include "compiler/support/integers.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

constexpr const char* kTuningFormat = "hstujit-tuning-1";

// What does not depend on the order of members and on blanks; none for texts with numbers or characters that can be
// written in several ways. Merging compares every config with every other: parsing each time takes seconds.
struct Imprint {
  uint64_t sum = 0;
  uint64_t squares = 0;
  bool operator==(const Imprint&) const = default;
};
std::optional<Imprint> imprint(std::string_view text) {
  Imprint result;
  bool digit = false;
  for (const char c : text) {
    if (c == '\\' || c == '.' || (digit && (c == 'e' || c == 'E'))) return std::nullopt;
    digit = c >= '0' && c <= '9';
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
    const auto value = static_cast<uint64_t>(static_cast<unsigned char>(c));
    result.sum += value;
    result.squares += value * value;
  }
  return result;
}

// Microseconds. Ratios of two times, and of them the products, are finite numbers that can be read.
constexpr double kShortestTime = 1e-6;
constexpr double kLongestTime = 1e12;  // twelve days
bool is_time(double value) { return value >= kShortestTime && value <= kLongestTime; }
bool is_spread(double value) { return value >= 0 && value <= kLongestTime; }

template <typename Candidates>
auto find_config(Candidates& candidates, std::string_view config) {
  return std::find_if(candidates.begin(), candidates.end(),
                      [config](const auto& candidate) { return same_config(candidate.config, config); });
}

template <typename Candidates>
auto find_timing(Candidates& candidates, std::string_view config, std::string_view workload) {
  return std::find_if(candidates.begin(), candidates.end(), [&](const TimedCandidate& candidate) {
    return candidate.workload == workload && same_config(candidate.config, config);
  });
}

// Whether one may be a newer finding of the other, as far as more than the config counts.
bool same_workload(const TimedCandidate& a, const TimedCandidate& b) { return a.workload == b.workload; }
bool same_workload(const UntimedCandidate&, const UntimedCandidate&) { return true; }

// A config as same_config() compares it. What is no JSON is the same as itself alone.
SortedJson config_key(std::string_view config) {
  const Result<Json> json = parse_json(config);
  return json.ok() ? SortedJson(*json) : SortedJson(config);
}

// A list of findings that others are merged into; both may have thousands. Erased ones stay until finish().
template <typename Candidate>
class MergedList {
 public:
  explicit MergedList(std::vector<Candidate>& list) : list_(list), erased_(list.size(), false) {
    for (size_t i = 0; i < list.size(); ++i) places_[config_key(list[i].config)].push_back(i);
  }

  // In place of the one that it is a newer finding of, else at the end: the order of a list stays as it was.
  void replace_or_add(const Candidate& candidate) {
    std::vector<size_t>& places = places_[config_key(candidate.config)];
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

  void erase(std::string_view config) {
    const auto found = places_.find(config_key(config));
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
  std::map<SortedJson, std::vector<size_t>> places_;  // of each config
};

Result<Json> config_to_json(const std::string& config) {
  Json json = json_or_null(config);
  if (!json.is_object())
    return Status(Code::kInvalidArgument, fmt::format("config is {}; it must be a JSON object", quote(config)));
  return json;
}

std::string config_member(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_object() ? dump_json(with_current_names(*member)) : std::string();
}

Result<TimedCandidate> timed_from_json(const Json& json) {
  if (!json.is_object()) return Status(Code::kIo, "a timed candidate is no object");
  TimedCandidate candidate;
  candidate.config = config_member(json, "config");
  candidate.workload = text_member(json, "workload");
  candidate.source_digest = text_member(json, "source");
  candidate.median_us = number_member(json, "median_us", -1);
  candidate.spread_us = number_member(json, "spread_us", -1);
  if (candidate.config.empty() || !is_time(candidate.median_us) || !is_spread(candidate.spread_us))
    return Status(Code::kIo, "a timed candidate has no config or no time");
  if (const auto baseline = json.find("baseline"); baseline != json.end() && baseline->is_object()) {
    candidate.baseline = {config_member(*baseline, "config"), text_member(*baseline, "source"),
                          number_member(*baseline, "median_us", -1)};
    if (candidate.baseline.config.empty() || !is_time(candidate.baseline.median_us))
      return Status(Code::kIo, "the baseline of a timed candidate has no config or no time");
  }
  return candidate;
}

Result<UntimedCandidate> rejected_from_json(const Json& json) {
  if (!json.is_object()) return Status(Code::kIo, "a rejected candidate is no object");
  UntimedCandidate candidate;
  candidate.config = config_member(json, "config");
  candidate.source_digest = text_member(json, "source");
  candidate.reason = text_member(json, "reason");
  candidate.detail = text_member(json, "detail");
  if (candidate.config.empty() || candidate.reason.empty())
    return Status(Code::kIo, "a rejected candidate has no config or no reason");
  return candidate;
}

// For readers: what the winner gains, next to its parameters. Parsing takes the times from the list.
Json choice_to_json(const TuningRecord& record, const std::string& config) {
  Json json = {{"config", json_or_null(config)}};
  if (const TimedCandidate* timing = record.timing(config)) {
    json["median_us"] = timing->median_us;
    json["spread_us"] = timing->spread_us;
  }
  return json;
}

// Of a record that is no merge's: written before the rule that no config has both.
void drop_ended_times(TuningRecord* record) {
  MergedList timed(record->timed);
  for (const UntimedCandidate& candidate : record->rejected) {
    if (candidate.lasts()) timed.erase(candidate.config);
  }
  timed.finish();
}

}  // namespace

bool UntimedCandidate::lasts() const {
  return std::find(std::begin(kPassingReasons), std::end(kPassingReasons), reason) == std::end(kPassingReasons);
}

std::string tuning_digest(const TuningKey& key) {
  KeyHasher hasher("hstujit-tuning");
  hasher.add("schema", kTuningSchema);
  hasher.add("op", key.op).add("spec", key.spec).add("direction", key.direction).add("device", key.device);
  hasher.add("arch", key.arch).add("sm_count", key.sm_count).add("bucket", key.bucket);
  // A field that is added later leaves the digest of every key that does not have it.
  if (key.small_batch) hasher.add("small_batch", 1);
  if (key.deterministic) hasher.add("deterministic", 1);
  return hasher.finish();
}

bool same_config(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const std::optional<Imprint> a_imprint = imprint(a);
  const std::optional<Imprint> b_imprint = imprint(b);
  if (a_imprint && b_imprint && *a_imprint != *b_imprint) return false;
  // Without regard to the order of members.
  const Result<Json> left = parse_json(a), right = parse_json(b);
  return left.ok() && right.ok() && SortedJson(*left) == SortedJson(*right);
}

std::vector<TimedCandidate> TuningRecord::timings() const {
  std::vector<TimedCandidate> list;
  std::copy_if(timed.begin(), timed.end(), std::back_inserter(list),
               [this](const TimedCandidate& candidate) { return candidate.workload == workload; });
  return list;
}

const TimedCandidate* TuningRecord::timing(std::string_view config, std::string_view on_workload) const {
  const auto found = find_timing(timed, config, on_workload);
  return found != timed.end() ? &*found : nullptr;
}

const TimedCandidate* TuningRecord::valid_timing(std::string_view config, std::string_view source_digest,
                                                 std::string_view on_workload) const {
  const TimedCandidate* const found = timing(config, on_workload);
  return found != nullptr && found->source_digest == source_digest ? found : nullptr;
}

const UntimedCandidate* TuningRecord::valid_rejection(std::string_view config, std::string_view source_digest) const {
  const auto found = find_config(rejected, config);
  const bool holds =
      found != rejected.end() && !source_digest.empty() && found->source_digest == source_digest && found->lasts();
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
      times_.try_emplace(config_key(timing.config), &timing);
      const TimingBaseline& baseline = timing.baseline;
      firsts_.try_emplace({config_key(baseline.config), baseline.source_digest}, baseline.median_us);
    }
  }

  double of(const TimedCandidate& timing) const {
    const TimingBaseline& baseline = timing.baseline;
    if (baseline.config.empty()) return 1;
    const SortedJson config = config_key(baseline.config);
    const auto latest = times_.find(config);
    if (latest != times_.end() && latest->second->source_digest == baseline.source_digest)
      return latest->second->median_us / baseline.median_us;
    // Its own time has been ended or is of another source by now: any scale will do that all of its timings share.
    const auto first = firsts_.find({config, baseline.source_digest});
    return first != firsts_.end() ? first->second / baseline.median_us : 1;
  }

 private:
  std::map<SortedJson, const TimedCandidate*> times_;
  std::map<std::pair<SortedJson, std::string>, double> firsts_;  // of each baseline
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

std::string select_winner(const TuningRecord& record, const TimingFilter& competes) {
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

Result<TuningRecord> merge_records(const TuningRecord& older, const TuningRecord& newer) {
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
  for (const UntimedCandidate& candidate : newer.rejected) {
    if (candidate.lasts()) timed.erase(candidate.config);
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
  const std::string& winner = stays ? older.winner : newer.winner;
  const bool chosen = !winner.empty() && merged.timing(winner) != nullptr;
  merged.winner = chosen ? winner : select_winner(merged);
  return merged;
}

bool contains(const TuningRecord& whole, const TuningRecord& part) {
  using Finding = std::tuple<SortedJson, std::string, std::string>;
  std::set<Finding> timed, rejected;
  for (const TimedCandidate& candidate : whole.timed) {
    timed.insert({config_key(candidate.config), candidate.workload, candidate.source_digest});
  }
  for (const UntimedCandidate& candidate : whole.rejected) {
    rejected.insert({config_key(candidate.config), candidate.reason, candidate.source_digest});
  }
  return std::ranges::all_of(
             part.timed,
             [&](const TimedCandidate& candidate) {
               return timed.contains({config_key(candidate.config), candidate.workload, candidate.source_digest});
             }) &&
         std::ranges::all_of(part.rejected, [&](const UntimedCandidate& candidate) {
           return rejected.contains({config_key(candidate.config), candidate.reason, candidate.source_digest});
         });
}

Result<std::string> format_record(const TuningRecord& record) {
  Json timed = Json::array();
  for (const TimedCandidate& candidate : record.timed) {
    HSTUJIT_ASSIGN_OR_RETURN(Json config, config_to_json(candidate.config));
    if (!is_time(candidate.median_us) || !is_spread(candidate.spread_us))
      return Status(
          Code::kInvalidArgument,
          fmt::format("median_us is {} and spread_us is {} for config {}; allowed: times from {} to {}, spreads from 0",
                      candidate.median_us, candidate.spread_us, candidate.config, kShortestTime, kLongestTime));
    timed.push_back({{"config", std::move(config)},
                     {"workload", candidate.workload},
                     {"source", candidate.source_digest},
                     {"median_us", candidate.median_us},
                     {"spread_us", candidate.spread_us}});
    const TimingBaseline& baseline = candidate.baseline;
    if (baseline.config.empty()) continue;
    HSTUJIT_ASSIGN_OR_RETURN(Json baseline_config, config_to_json(baseline.config));
    if (!is_time(baseline.median_us))
      return Status(Code::kInvalidArgument,
                    fmt::format("baseline.median_us is {} for config {}; allowed: times from {} to {}",
                                baseline.median_us, candidate.config, kShortestTime, kLongestTime));
    timed.back()["baseline"] = {
        {"config", std::move(baseline_config)}, {"source", baseline.source_digest}, {"median_us", baseline.median_us}};
  }
  Json rejected = Json::array();
  for (const UntimedCandidate& candidate : record.rejected) {
    HSTUJIT_ASSIGN_OR_RETURN(Json config, config_to_json(candidate.config));
    if (candidate.reason.empty())
      return Status(Code::kInvalidArgument,
                    fmt::format("reason is empty for the rejected config {}; it must name why", candidate.config));
    rejected.push_back({{"config", std::move(config)},
                        {"source", candidate.source_digest},
                        {"reason", candidate.reason},
                        {"detail", candidate.detail}});
  }

  Json json = {{"format", kTuningFormat}, {"key", to_json(record.key)}, {"workload", record.workload}};
  if (record.rows > 0) json["rows"] = record.rows;
  for (const auto& [name, config] : {std::pair("winner", record.winner), std::pair("heuristic", record.heuristic)}) {
    if (config.empty()) continue;
    HSTUJIT_ASSIGN_OR_RETURN([[maybe_unused]] const Json checked, config_to_json(config));
    json[name] = choice_to_json(record, config);
  }
  json["timed"] = std::move(timed);
  json["rejected"] = std::move(rejected);
  json["environment"] = record.environment;
  return format_checked_json(std::move(json));
}

Result<TuningRecord> parse_record(std::string_view text, std::string_view digest) {
  HSTUJIT_ASSIGN_OR_RETURN(const Json json, parse_checked_json(text, kTuningFormat));
  TuningRecord record;
  if (const auto key = json.find("key"); key != json.end()) record.key = tuning_key_from(*key);
  if (tuning_digest(record.key) != digest) return Status(Code::kIo, "it belongs to another key");

  record.workload = text_member(json, "workload");
  record.rows = integer_member(json, "rows", 0);
  if (record.rows < 0 || record.rows > kMostRows) record.rows = 0;
  const auto choice = [&json](const char* name) {
    const auto member = json.find(name);
    return member != json.end() && member->is_object() ? config_member(*member, "config") : std::string();
  };
  record.winner = choice("winner");
  record.heuristic = choice("heuristic");
  const Json none = Json::array();
  const auto list = [&](const char* name) -> const Json& {
    const auto member = json.find(name);
    return member != json.end() && member->is_array() ? *member : none;
  };
  const Json &timed = list("timed"), &rejected = list("rejected");
  if (const size_t findings = timed.size() + rejected.size(); findings > kMaxRecordFindings)
    return Status(Code::kIo, fmt::format("it has {} findings; at most {} are read", findings, kMaxRecordFindings));
  for (const Json& item : timed) {
    HSTUJIT_ASSIGN_OR_RETURN(TimedCandidate candidate, timed_from_json(item));
    record.timed.push_back(std::move(candidate));
  }
  for (const Json& item : rejected) {
    HSTUJIT_ASSIGN_OR_RETURN(UntimedCandidate candidate, rejected_from_json(item));
    record.rejected.push_back(std::move(candidate));
  }
  if (const auto environment = json.find("environment"); environment != json.end() && environment->is_object()) {
    for (const auto& [name, value] : environment->items()) {
      if (value.is_string()) record.environment[name] = value.get<std::string>();
    }
  }
  drop_ended_times(&record);
  if (!record.winner.empty() && record.timing(record.winner) == nullptr) record.winner = select_winner(record);
  return record;
}

}  // namespace hstujit
