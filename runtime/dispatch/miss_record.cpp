#include "runtime/dispatch/miss_record.h"

#include <fmt/format.h>

#include <map>
#include <unordered_set>

#include "compiler/spec/json_text.h"
#include "compiler/spec/limits.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"
#include "runtime/dispatch/batch_classes.h"
#include "runtime/dispatch/problem_bucket.h"

namespace hstujit {

namespace {

constexpr const char* kVersionField = "hstujit_miss";

Status text_field(const Json& json, const char* name, std::string* value) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) {
    return Status(Code::kInvalidConfig, fmt::format("{} is missing or no text", name));
  }
  *value = found->get<std::string>();
  return {};
}

Status count_field(const Json& json, const char* name, int64_t* value) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_integer() || *found < 1 || *found > kMaxSeqLen) {
    return Status(Code::kInvalidConfig, fmt::format("{} is missing or no integer from 1 to {}", name, kMaxSeqLen));
  }
  *value = found->get<int64_t>();
  return {};
}

// Left out where it is false.
Status flag_field(const Json& json, const char* name, bool* value) {
  const auto found = json.find(name);
  if (found == json.end()) return {};
  if (!found->is_boolean()) return Status(Code::kInvalidConfig, fmt::format("{} is no boolean", name));
  *value = found->get<bool>();
  return {};
}

// At most one of the classes' fields.
Status class_field(const Json& json, BatchClass* batch_class) {
  for (const BatchClass each : {BatchClass::kSmall, BatchClass::kShortSequences}) {
    bool is_of = false;
    HSTUJIT_RETURN_IF_ERROR(flag_field(json, std::string(key_field(each)).c_str(), &is_of));
    if (!is_of) continue;
    if (*batch_class != BatchClass::kAny) {
      return Status(Code::kInvalidConfig, fmt::format("{} and {} are both true; a key is of one class of batches",
                                                      key_field(*batch_class), key_field(each)));
    }
    *batch_class = each;
  }
  return {};
}

// A bucket that the length mode gives to no length is one that no look-up asks for.
Status check_bucket(const MissRecord& miss, const Signature& signature) {
  const int64_t bucket = miss.key.bucket;
  const bool single = !has_max_seq_len(signature);
  if (problem_bucket(signature, miss.length_mode, bucket, {bucket}) != bucket) {
    return Status(Code::kInvalidConfig, single ? fmt::format("bucket is {}; {} {} has {} alone", bucket, miss.key.op,
                                                             miss.key.direction, kSingleBucket)
                                               : fmt::format("bucket is {}, which length_mode {} gives to no length",
                                                             bucket, to_string(miss.length_mode)));
  }
  if (single || miss.length == bucket) return {};
  return Status(Code::kInvalidConfig, fmt::format("length is {}; it must be the bucket, {}", miss.length, bucket));
}

// So is a class of batches that the device does not tell apart there.
Status check_class(const MissRecord& miss, const OpSpec& spec, Direction direction) {
  if (miss.key.batch_class != BatchClass::kShortSequences) return {};
  const Result<DeviceSpec> device = known_device(miss.key.arch);
  if (!device.ok() || other_batches(spec, direction, miss.key.bucket, *device)) return {};
  return Status(Code::kInvalidConfig,
                fmt::format("short_sequences is true; allowed: false, {} {} on {} has one kernel for all batches of "
                            "bucket {}",
                            spec.op(), to_string(direction), printable(miss.key.arch), miss.key.bucket));
}

// The instance that asks for a miss; the key's spec becomes canonical text.
Result<Instance> instance_of(MissRecord& miss) {
  Json entry = json_or_null(miss.key.spec);
  HSTUJIT_ASSIGN_OR_RETURN(const OpSpecPtr spec, parse_op_spec(entry, "spec"));
  const auto direction = parse_direction(miss.key.direction);
  if (!direction || !spec->supports(*direction)) {
    return Status(Code::kInvalidConfig,
                  fmt::format("direction is {}, which {} does not have", quote(miss.key.direction), spec->op()));
  }
  miss.key.op = spec->op();
  HSTUJIT_RETURN_IF_ERROR(check_bucket(miss, spec->signature(*direction)));
  HSTUJIT_RETURN_IF_ERROR(check_class(miss, *spec, *direction));
  miss.key.spec = key_text(*spec);
  constexpr size_t kDigits = 12;
  entry["name"] = fmt::format("{}-{}-{}", spec->op(), miss.key.bucket, tuning_digest(miss.key).substr(0, kDigits));
  entry["directions"] = {miss.key.direction};
  if (miss.key.batch_class == BatchClass::kSmall) entry["small_batches"] = true;
  entry[has_sequences(spec->signature(*direction)) ? "max_seq_len" : "rows"] = miss.length;
  return parse_instance(entry, "spec", {});
}

}  // namespace

std::string_view to_string(MissReason reason) { return reason == MissReason::kUntuned ? "untuned" : "uncompiled"; }

std::string format_miss(const MissRecord& miss) {
  Json json = {{kVersionField, kMissVersion},
               {"op", miss.key.op},
               {"spec", json_or_null(miss.key.spec)},
               {"direction", miss.key.direction},
               {"device", miss.key.device},
               {"arch", miss.key.arch},
               {"sm_count", miss.key.sm_count},
               {"bucket", miss.key.bucket},
               {"length", miss.length},
               {"length_mode", to_string(miss.length_mode)},
               {"reason", to_string(miss.reason)}};
  write_batch_class(json, miss.key.batch_class);
  if (miss.key.deterministic) json["deterministic"] = true;
  return dump_json(json);
}

Result<MissRecord> parse_miss(std::string_view line) {
  const Json json = json_or_null(line);
  if (!json.is_object() || !json.contains(kVersionField)) {
    return Status(Code::kInvalidConfig, "no whole line of HSTUJIT_RECORD");
  }
  if (json[kVersionField] != kMissVersion) {
    return Status(Code::kInvalidConfig,
                  fmt::format("{} is {}; allowed: {}", kVersionField, brief_json(json[kVersionField]), kMissVersion));
  }
  MissRecord miss;
  HSTUJIT_RETURN_IF_ERROR(text_field(json, "op", &miss.key.op));
  if (!json.contains("spec") || !json["spec"].is_object()) {
    return Status(Code::kInvalidConfig, "spec is missing or no JSON object");
  }
  miss.key.spec = dump_json(json["spec"]);
  HSTUJIT_RETURN_IF_ERROR(text_field(json, "direction", &miss.key.direction));
  HSTUJIT_RETURN_IF_ERROR(text_field(json, "device", &miss.key.device));
  HSTUJIT_RETURN_IF_ERROR(text_field(json, "arch", &miss.key.arch));
  HSTUJIT_RETURN_IF_ERROR(count_field(json, "sm_count", &miss.key.sm_count));
  HSTUJIT_RETURN_IF_ERROR(count_field(json, "bucket", &miss.key.bucket));
  HSTUJIT_RETURN_IF_ERROR(count_field(json, "length", &miss.length));
  HSTUJIT_RETURN_IF_ERROR(class_field(json, &miss.key.batch_class));
  HSTUJIT_RETURN_IF_ERROR(flag_field(json, "deterministic", &miss.key.deterministic));
  std::string mode, reason;
  HSTUJIT_RETURN_IF_ERROR(text_field(json, "length_mode", &mode));
  HSTUJIT_RETURN_IF_ERROR(text_field(json, "reason", &reason));
  const auto known_mode = parse_length_mode(mode);
  if (!known_mode) {
    return Status(Code::kInvalidConfig, fmt::format("length_mode is {}; allowed: {}", quote(mode), kLengthModeNames));
  }
  miss.length_mode = *known_mode;
  if (reason != to_string(MissReason::kUntuned) && reason != to_string(MissReason::kUncompiled)) {
    return Status(Code::kInvalidConfig, fmt::format("reason is {}; allowed: untuned uncompiled", quote(reason)));
  }
  miss.reason = reason == to_string(MissReason::kUntuned) ? MissReason::kUntuned : MissReason::kUncompiled;
  return miss;
}

Result<Recording> parse_recording(std::string_view text, const std::string& origin, size_t max_kernels) {
  Recording recording;
  recording.origin = origin;
  std::map<std::string, size_t> known;        // by digest of the key
  std::unordered_set<std::string_view> seen;  // many processes write the same lines
  size_t skipped = 0;
  std::string cut;
  const auto skip = [&](size_t line, const Status& why) {
    if (skipped++ == 0) recording.warning = fmt::format("{}:{}: {}", printable(origin), line, why.message());
  };
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    const std::string_view entry = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (entry.find_first_not_of(" \t\r") == std::string_view::npos || !seen.insert(entry).second) continue;
    Result<MissRecord> miss = parse_miss(entry);
    if (!miss.ok()) {
      skip(line, miss.status());
      continue;
    }
    Result<Instance> instance = instance_of(*miss);
    if (!instance.ok()) {
      skip(line, instance.status());
      continue;
    }
    std::string digest = tuning_digest(miss->key);
    if (known.size() == max_kernels && !known.contains(digest)) {
      cut = fmt::format("{}:{}: {} kernels are the most of a recording; those that follow are left out",
                        printable(origin), line, max_kernels);
      break;
    }
    const auto [place, added] = known.emplace(std::move(digest), recording.misses.size());
    if (added) {
      recording.misses.push_back(std::move(*miss));
      recording.lines.push_back(line);
      recording.config.instances.push_back(std::move(*instance));
    } else if (miss->reason == MissReason::kUntuned) {
      recording.misses[place->second].reason = MissReason::kUntuned;
    }
  }
  if (skipped == 1) recording.warning += "; the line is skipped";
  if (skipped > 1) recording.warning += fmt::format("; this and {} are skipped", counted(skipped - 1, "more line"));
  if (!cut.empty()) recording.warning += (recording.warning.empty() ? "" : "; ") + cut;
  if (!recording.misses.empty()) return recording;
  return Status(Code::kInvalidConfig, skipped == 0 ? fmt::format("{}: no recorded miss in it", printable(origin))
                                                   : fmt::format("no recorded miss is left: {}", recording.warning));
}

Result<Recording> load_recording(const std::filesystem::path& path) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxRecordingBytes));
  return parse_recording(text, path.string());
}

}  // namespace hstujit
