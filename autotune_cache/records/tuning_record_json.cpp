#include "autotune_cache/records/tuning_record_json.h"

#include <fmt/format.h>

#include <utility>

#include "autotune_cache/files/checked_json.h"
#include "autotune_cache/files/member_types.h"
#include "autotune_cache/records/merged_findings.h"
#include "autotune_cache/records/tuning_key_json.h"
#include "compiler/support/memory.h"
#include "compiler/support/read_limits.h"

namespace hstujit {
namespace {

constexpr const char* kTuningFormat = "hstujit-tuning-1";

// Microseconds. Ratios of two times, and of them the products, are finite numbers that can be read.
constexpr double kShortestTime = 1e-6;
constexpr double kLongestTime = 1e12;  // twelve days
bool is_time(double value) { return value >= kShortestTime && value <= kLongestTime; }
bool is_spread(double value) { return value >= 0 && value <= kLongestTime; }

// Checks "winner" and "heuristic", which an unfinished run has not: a config, and the times where it was timed.
Status check_choice(const Json& record, const std::string& name) {
  HSTUJIT_RETURN_IF_ERROR(check_filled_object(record, "", name.c_str()));
  const auto choice = record.find(name);
  if (choice == record.end()) return {};
  const std::string where = name + ".";
  if (!choice->contains("config")) return Status(Code::kIo, fmt::format("{} has no config", name));
  HSTUJIT_RETURN_IF_ERROR(check_filled_object(*choice, where, "config"));
  for (const auto& [time, allowed] : {std::pair("median_us", &is_time), std::pair("spread_us", &is_spread)}) {
    const auto value = choice->find(time);
    if (value != choice->end() && !(value->is_number() && allowed(value->get<double>())))
      return Status(Code::kIo, fmt::format("{}{} is {}; it must be a time", where, time, brief_json(*value)));
  }
  return {};
}

Result<TimedCandidate> timed_from_json(const Json& json) {
  if (!json.is_object()) return Status(Code::kIo, "a timed candidate is no object");
  constexpr const char* kWhere = "timed: ";
  HSTUJIT_RETURN_IF_ERROR(check_filled_object(json, kWhere, "config"));
  HSTUJIT_RETURN_IF_ERROR(check_text(json, kWhere, "workload"));
  HSTUJIT_RETURN_IF_ERROR(check_text(json, kWhere, "source"));
  HSTUJIT_RETURN_IF_ERROR(check_filled_object(json, kWhere, "baseline"));
  TimedCandidate candidate;
  candidate.config = RecordedConfig::member_of(json);
  candidate.workload = text_member(json, "workload");
  candidate.source_digest = text_member(json, "source");
  candidate.median_us = number_member(json, "median_us", -1);
  candidate.spread_us = number_member(json, "spread_us", -1);
  if (candidate.config.empty() || !is_time(candidate.median_us) || !is_spread(candidate.spread_us))
    return Status(Code::kIo, "a timed candidate has no config or no time");
  if (const auto baseline = json.find("baseline"); baseline != json.end()) {
    HSTUJIT_RETURN_IF_ERROR(check_filled_object(*baseline, "timed: baseline.", "config"));
    HSTUJIT_RETURN_IF_ERROR(check_text(*baseline, "timed: baseline.", "source"));
    candidate.baseline = {RecordedConfig::member_of(*baseline), text_member(*baseline, "source"),
                          number_member(*baseline, "median_us", -1)};
    if (candidate.baseline.config.empty() || !is_time(candidate.baseline.median_us))
      return Status(Code::kIo, "the baseline of a timed candidate has no config or no time");
  }
  return candidate;
}

Result<TuningRejection> rejected_from_json(const Json& json) {
  if (!json.is_object()) return Status(Code::kIo, "a rejected candidate is no object");
  HSTUJIT_RETURN_IF_ERROR(check_filled_object(json, "rejected: ", "config"));
  for (const char* name : {"source", "reason", "detail"}) HSTUJIT_RETURN_IF_ERROR(check_text(json, "rejected: ", name));
  TuningRejection candidate;
  candidate.config = RecordedConfig::member_of(json);
  candidate.source_digest = text_member(json, "source");
  candidate.reason = text_member(json, "reason");
  candidate.detail = text_member(json, "detail");
  if (candidate.config.empty() || candidate.reason.empty())
    return Status(Code::kIo, "a rejected candidate has no config or no reason");
  return candidate;
}

// For readers: what the winner gains, next to its parameters. Parsing takes the times from the list.
Result<Json> choice_to_json(const TuningRecord& record, const RecordedConfig& config) {
  HSTUJIT_ASSIGN_OR_RETURN(Json config_json, config.to_json());
  Json json = {{"config", std::move(config_json)}};
  if (const TimedCandidate* timing = record.timing(config)) {
    json["median_us"] = timing->median_us;
    json["spread_us"] = timing->spread_us;
  }
  return json;
}

// Mends a record that is not a merge's: written before the rule that no config has both.
void drop_ended_times(TuningRecord* record) {
  MergedList timed(record->timed);
  for (const TuningRejection& candidate : record->rejected) {
    if (candidate.is_permanent()) timed.erase(candidate.config);
  }
  timed.finish();
}

}  // namespace

Result<Json> to_json(const TimedCandidate& candidate) {
  HSTUJIT_ASSIGN_OR_RETURN(Json config, candidate.config.to_json());
  if (!is_time(candidate.median_us) || !is_spread(candidate.spread_us))
    return Status(
        Code::kInvalidArgument,
        fmt::format("median_us is {} and spread_us is {} for config {}; allowed: times from {} to {}, spreads from 0",
                    candidate.median_us, candidate.spread_us, candidate.config.text(), kShortestTime, kLongestTime));
  Json json = {{"config", std::move(config)},
               {"workload", candidate.workload},
               {"source", candidate.source_digest},
               {"median_us", candidate.median_us},
               {"spread_us", candidate.spread_us}};
  const TimingBaseline& baseline = candidate.baseline;
  if (baseline.config.empty()) return json;
  HSTUJIT_ASSIGN_OR_RETURN(Json baseline_config, baseline.config.to_json());
  if (!is_time(baseline.median_us))
    return Status(Code::kInvalidArgument,
                  fmt::format("baseline.median_us is {} for config {}; allowed: times from {} to {}",
                              baseline.median_us, candidate.config.text(), kShortestTime, kLongestTime));
  json["baseline"] = {
      {"config", std::move(baseline_config)}, {"source", baseline.source_digest}, {"median_us", baseline.median_us}};
  return json;
}

Result<Json> to_json(const TuningRejection& candidate) {
  HSTUJIT_ASSIGN_OR_RETURN(Json config, candidate.config.to_json());
  if (candidate.reason.empty())
    return Status(Code::kInvalidArgument,
                  fmt::format("reason is empty for the rejected config {}; it must name why", candidate.config.text()));
  return Json{{"config", std::move(config)},
              {"source", candidate.source_digest},
              {"reason", candidate.reason},
              {"detail", candidate.detail}};
}

Result<std::string> format_record(const TuningRecord& record) {
  if (const size_t findings = record.timed.size() + record.rejected.size(); findings > kMaxRecordFindings)
    return Status(Code::kInvalidArgument, fmt::format("timed and rejected have {} findings; allowed: at most {}",
                                                      findings, kMaxRecordFindings));
  Json timed = Json::array(), rejected = Json::array();
  for (const TimedCandidate& candidate : record.timed) {
    HSTUJIT_ASSIGN_OR_RETURN(Json item, to_json(candidate));
    timed.push_back(std::move(item));
  }
  for (const TuningRejection& candidate : record.rejected) {
    HSTUJIT_ASSIGN_OR_RETURN(Json item, to_json(candidate));
    rejected.push_back(std::move(item));
  }
  Json json = {{"format", kTuningFormat}, {"key", to_json(record.key)}, {"workload", record.workload}};
  if (record.rows > 0) json["rows"] = record.rows;
  for (const auto& [name, config] : {std::pair("winner", record.winner), std::pair("heuristic", record.heuristic)}) {
    if (config.empty()) continue;
    HSTUJIT_ASSIGN_OR_RETURN(json[name], choice_to_json(record, config));
  }
  json["timed"] = std::move(timed);
  json["rejected"] = std::move(rejected);
  json["environment"] = record.environment;
  return format_checked_json(std::move(json), kMaxRecordBytes);
}

namespace {

Result<TuningRecord> parsed_record(std::string_view text, std::string_view digest) {
  HSTUJIT_ASSIGN_OR_RETURN(const Json json, parse_checked_json(text, kTuningFormat));
  TuningRecord record;
  if (const auto key = json.find("key"); key != json.end()) record.key = tuning_key_from(*key);
  if (tuning_digest(record.key) != digest) return Status(Code::kIo, "it belongs to another key");

  HSTUJIT_RETURN_IF_ERROR(check_text(json, "", "workload"));
  HSTUJIT_RETURN_IF_ERROR(check_integer(json, "", "rows"));
  for (const char* name : {"winner", "heuristic"}) HSTUJIT_RETURN_IF_ERROR(check_choice(json, name));
  for (const char* name : {"timed", "rejected"}) HSTUJIT_RETURN_IF_ERROR(check_list(json, "", name));
  record.workload = text_member(json, "workload");
  record.rows = integer_member(json, "rows", 0);
  if (record.rows < 0) return Status(Code::kIo, fmt::format("rows is {}; it must be 0 or more", record.rows));
  if (record.rows > kMostRows) record.rows = 0;
  const auto choice = [&json](const char* name) {
    const auto member = json.find(name);
    return member != json.end() ? RecordedConfig::member_of(*member) : RecordedConfig();
  };
  record.winner = choice("winner");
  record.heuristic = choice("heuristic");
  const Json none = Json::array();
  const auto list = [&](const char* name) -> const Json& {
    const auto member = json.find(name);
    return member != json.end() ? *member : none;
  };
  const Json &timed = list("timed"), &rejected = list("rejected");
  if (const size_t findings = timed.size() + rejected.size(); findings > kMaxRecordFindings)
    return Status(Code::kIo, fmt::format("it has {} findings; at most {} are read", findings, kMaxRecordFindings));
  for (const Json& item : timed) {
    HSTUJIT_ASSIGN_OR_RETURN(TimedCandidate candidate, timed_from_json(item));
    record.timed.push_back(std::move(candidate));
  }
  for (const Json& item : rejected) {
    HSTUJIT_ASSIGN_OR_RETURN(TuningRejection candidate, rejected_from_json(item));
    record.rejected.push_back(std::move(candidate));
  }
  if (const auto environment = json.find("environment"); environment != json.end()) {
    if (!environment->is_object()) return Status(Code::kIo, "environment is no object");
    HSTUJIT_RETURN_IF_ERROR(check_texts(*environment, "environment."));
    for (const auto& [name, value] : environment->items()) record.environment[name] = value.get<std::string>();
  }
  drop_ended_times(&record);
  if (!record.winner.empty() && record.timing(record.winner) == nullptr) record.winner = select_winner(record);
  return record;
}

}  // namespace

Result<TuningRecord> parse_record(std::string_view text, std::string_view digest) {
  return within_memory("the tuning record", [&] { return parsed_record(text, digest); });
}

}  // namespace hstujit
