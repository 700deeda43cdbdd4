#include "runtime/kernel_choice.h"

#include <fmt/format.h>

namespace hstujit {

namespace {

constexpr size_t kShownDigits = 12;

// What a kernel is wanted for.
struct Wanted {
  const OpSpec& spec;
  Direction direction;
  const DeviceSpec& device;
  const ProblemBucket& bucket;
  const Restriction& restriction;

  std::vector<TuningKey> keys(const DeviceSpec& recorded_on) const {
    return serving_keys(spec, direction, recorded_on, bucket, restriction);
  }
};

// Why a config cannot be used; empty, and *config filled in, when it can.
std::string refusal(const Wanted& wanted, const nlohmann::ordered_json& json, KernelConfig* config) {
  const Result<KernelConfig> parsed = parse_kernel_config(json);
  if (!parsed.ok()) return parsed.status().message();
  *config = *parsed;
  const Result<const Skeleton*> skeleton = find_skeleton(config->skeleton);
  if (!skeleton.ok()) return skeleton.status().message();
  if ((*skeleton)->op() != wanted.spec.op() || (*skeleton)->direction() != wanted.direction) {
    return fmt::format("{} is no template of {} {}", config->skeleton, wanted.spec.op(), to_string(wanted.direction));
  }
  const std::vector<Rejection> reasons =
      rejections(**skeleton, wanted.spec, *config, wanted.device, wanted.restriction);
  return reasons.empty() ? std::string() : reasons.front().detail;
}

// HSTUJIT_OVERRIDE: its fields in place of the choice's.
Status apply_override(const Engine& engine, const Wanted& wanted, KernelChoice* choice) {
  const std::string text = engine.environment().text(Env::kOverride);
  if (text.empty()) return {};
  const auto patch = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!patch.is_object()) {
    return Status(Code::kInvalidArgument, "HSTUJIT_OVERRIDE is " + text + "; allowed: a JSON object of config fields");
  }
  nlohmann::ordered_json json = to_json(choice->config);
  json.update(patch);
  const std::string reason = refusal(wanted, json, &choice->config);
  if (!reason.empty()) return Status(Code::kUnsupported, "HSTUJIT_OVERRIDE gives " + json.dump() + ": " + reason);
  choice->why = "HSTUJIT_OVERRIDE over " + choice->why;
  return {};
}

// What HSTUJIT_FROZEN says.
Result<KernelChoice> frozen_choice(const FrozenChoices& frozen, const Wanted& wanted) {
  KernelChoice choice;
  const KernelConfig* config = nullptr;
  for (const TuningKey& key : wanted.keys(wanted.device)) {
    if (config == nullptr) config = frozen.find(key);
  }
  const std::string_view op = wanted.spec.op(), direction = to_string(wanted.direction);
  if (config == nullptr) {
    return Status(Code::kCacheMiss,
                  fmt::format("HSTUJIT_FROZEN is {}, which has no choice for {} {}, bucket {}, on {} ({}, {} "
                              "multiprocessors); make it anew from a config that lists this instance",
                              frozen.origin(), op, direction, to_string(wanted.bucket), wanted.device.name,
                              wanted.device.arch, wanted.device.sm_count));
  }
  const std::string reason = refusal(wanted, to_json(*config), &choice.config);
  if (!reason.empty()) {
    return Status(Code::kInvalidConfig,
                  fmt::format("HSTUJIT_FROZEN is {}, whose choice for {} {}, bucket {}, cannot run on {}: {}",
                              frozen.origin(), op, direction, to_string(wanted.bucket), wanted.device.name, reason));
  }
  choice.tuned = true;
  choice.why = fmt::format("frozen in {}, {}", frozen.origin(), frozen.checksum().substr(0, kShownDigits));
  return choice;
}

// The winner that was recorded on `recorded_on`, when the wanted device can run it.
std::optional<KernelChoice> recorded_choice(Engine& engine, const Wanted& wanted, const DeviceSpec& recorded_on) {
  KernelChoice choice;
  const auto usable = [&](const TuningRecord& record) {
    if (record.winner.empty()) return false;
    const auto winner = nlohmann::ordered_json::parse(record.winner, nullptr, false);
    const std::string reason = refusal(wanted, winner, &choice.config);
    if (reason.empty()) return true;
    engine.log().event(LogCategory::kDispatch, "tuned-config-refused",
                       {{"op", wanted.spec.op()},
                        {"bucket", to_string(wanted.bucket)},
                        {"device", recorded_on.name},
                        {"reason", reason}});
    return false;
  };
  for (const TuningKey& key : wanted.keys(recorded_on)) {
    const auto record = engine.tuning().find(key, usable);
    if (!record) continue;
    const TimedCandidate* timing = record->timing(record->winner);
    choice.why = timing == nullptr ? std::string("the tuning database's winner")
                                   : fmt::format("the tuning database's winner, {:.1f} us", timing->median_us);
    return choice;
  }
  return std::nullopt;
}

// The winner of the nearest device that has a record: a guess, as the cost model's is, but one that was measured.
std::optional<KernelChoice> nearest_choice(Engine& engine, const Wanted& wanted) {
  const DeviceSpec& device = wanted.device;
  for (const DeviceSpec& other : nearest_devices(device)) {
    std::optional<KernelChoice> choice = recorded_choice(engine, wanted, other);
    if (!choice) continue;
    choice->nearest = other.name;
    choice->why = fmt::format("untuned on {} ({} multiprocessors); on {} ({}), the nearest device with a record, {}",
                              device.name, device.sm_count, other.name, other.sm_count, choice->why);
    return choice;
  }
  return std::nullopt;
}

}  // namespace

TuningKey tuning_key(const OpSpec& spec, Direction direction, const DeviceSpec& device, const ProblemBucket& bucket,
                     const Restriction& restriction) {
  TuningKey key;
  key.op = spec.op();
  key.spec = key_text(spec);
  key.direction = to_string(direction);
  key.device = device.name;
  key.arch = device.arch;
  key.sm_count = device.sm_count;
  key.bucket = bucket.rows;
  key.small_batch = bucket.small_batch;
  key.deterministic = restriction.deterministic;
  return key;
}

std::vector<TuningKey> serving_keys(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                    const ProblemBucket& bucket, const Restriction& restriction) {
  std::vector<TuningKey> keys = {tuning_key(spec, direction, device, bucket, restriction)};
  if (restriction.deterministic) keys.push_back(tuning_key(spec, direction, device, bucket));
  return keys;
}

ProblemSize heuristic_size(const ProblemBucket& bucket) {
  ProblemSize size;
  size.max_seq_len = bucket.rows;
  if (bucket.small_batch) {
    size.small_batch = true;
    size.batch = 1;
    size.mean_fill = 1;
  }
  return size;
}

Result<KernelChoice> choose_kernel(Engine& engine, const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                   const ProblemBucket& bucket, const Restriction& restriction) {
  const Wanted wanted{spec, direction, device, bucket, restriction};
  if (const FrozenChoices* const frozen = engine.frozen()) return frozen_choice(*frozen, wanted);
  std::optional<KernelChoice> choice = recorded_choice(engine, wanted, device);
  if (choice) {
    choice->tuned = true;
  } else {
    choice = nearest_choice(engine, wanted);
  }
  if (!choice) {
    choice.emplace();
    HSTUJIT_ASSIGN_OR_RETURN(choice->config,
                             heuristic_config(spec, direction, device, heuristic_size(bucket), restriction));
    choice->why = fmt::format("untuned on {}: the cost model's fastest estimate", device.name);
  }
  HSTUJIT_RETURN_IF_ERROR(apply_override(engine, wanted, &*choice));
  return *std::move(choice);
}

}  // namespace hstujit
