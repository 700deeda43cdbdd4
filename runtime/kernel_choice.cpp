#include "runtime/kernel_choice.h"

#include <fmt/format.h>

namespace hstujit {

namespace {

constexpr size_t kShownDigits = 12;

// Why a config cannot be used; empty, and *config filled in, when it can.
std::string refusal(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                    const nlohmann::ordered_json& json, KernelConfig* config) {
  const Result<KernelConfig> parsed = parse_kernel_config(json);
  if (!parsed.ok()) return parsed.status().message();
  *config = *parsed;
  const Result<const Skeleton*> skeleton = find_skeleton(config->skeleton);
  if (!skeleton.ok()) return skeleton.status().message();
  if ((*skeleton)->op() != spec.op() || (*skeleton)->direction() != direction) {
    return fmt::format("{} is no template of {} {}", config->skeleton, spec.op(), to_string(direction));
  }
  const std::vector<Rejection> rejections = (*skeleton)->reject(spec, *config, device);
  return rejections.empty() ? std::string() : rejections.front().detail;
}

// HSTUJIT_OVERRIDE: its fields in place of the choice's.
Status apply_override(const Engine& engine, const OpSpec& spec, Direction direction, const DeviceSpec& device,
                      KernelChoice* choice) {
  const std::string text = engine.environment().text(Env::kOverride);
  if (text.empty()) return {};
  const auto patch = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!patch.is_object()) {
    return Status(Code::kInvalidArgument, "HSTUJIT_OVERRIDE is " + text + "; allowed: a JSON object of config fields");
  }
  nlohmann::ordered_json json = to_json(choice->config);
  json.update(patch);
  const std::string reason = refusal(spec, direction, device, json, &choice->config);
  if (!reason.empty()) return Status(Code::kUnsupported, "HSTUJIT_OVERRIDE gives " + json.dump() + ": " + reason);
  choice->why = "HSTUJIT_OVERRIDE over " + choice->why;
  return {};
}

// What HSTUJIT_FROZEN says.
Result<KernelChoice> frozen_choice(const FrozenChoices& frozen, const OpSpec& spec, Direction direction,
                                   const DeviceSpec& device, const ProblemBucket& bucket) {
  KernelChoice choice;
  const KernelConfig* const config = frozen.find(tuning_key(spec, direction, device, bucket));
  if (config == nullptr) {
    return Status(Code::kCacheMiss,
                  fmt::format("HSTUJIT_FROZEN is {}, which has no choice for {} {}, bucket {}, on {} ({}, {} "
                              "multiprocessors); make it anew from a config that lists this instance",
                              frozen.origin(), spec.op(), to_string(direction), to_string(bucket), device.name,
                              device.arch, device.sm_count));
  }
  const std::string reason = refusal(spec, direction, device, to_json(*config), &choice.config);
  if (!reason.empty()) {
    return Status(
        Code::kInvalidConfig,
        fmt::format("HSTUJIT_FROZEN is {}, whose choice for {} {}, bucket {}, cannot run on {}: {}", frozen.origin(),
                    spec.op(), to_string(direction), to_string(bucket), device.name, reason));
  }
  choice.tuned = true;
  choice.why = fmt::format("frozen in {}, {}", frozen.origin(), frozen.checksum().substr(0, kShownDigits));
  return choice;
}

// The winner that was recorded on `recorded_on`, when `device` can run it.
std::optional<KernelChoice> recorded_choice(Engine& engine, const OpSpec& spec, Direction direction,
                                            const DeviceSpec& device, const DeviceSpec& recorded_on,
                                            const ProblemBucket& bucket) {
  KernelChoice choice;
  const auto usable = [&](const TuningRecord& record) {
    if (record.winner.empty()) return false;
    const auto winner = nlohmann::ordered_json::parse(record.winner, nullptr, false);
    const std::string reason = refusal(spec, direction, device, winner, &choice.config);
    if (reason.empty()) return true;
    engine.log().event(
        LogCategory::kDispatch, "tuned-config-refused",
        {{"op", spec.op()}, {"bucket", to_string(bucket)}, {"device", recorded_on.name}, {"reason", reason}});
    return false;
  };
  const auto record = engine.tuning().find(tuning_key(spec, direction, recorded_on, bucket), usable);
  if (!record) return std::nullopt;
  const TimedCandidate* timing = record->timing(record->winner);
  choice.why = timing == nullptr ? std::string("the tuning database's winner")
                                 : fmt::format("the tuning database's winner, {:.1f} us", timing->median_us);
  return choice;
}

// The winner of the nearest device that has a record: a guess, as the cost model's is, but one that was measured.
std::optional<KernelChoice> nearest_choice(Engine& engine, const OpSpec& spec, Direction direction,
                                           const DeviceSpec& device, const ProblemBucket& bucket) {
  for (const DeviceSpec& other : nearest_devices(device)) {
    std::optional<KernelChoice> choice = recorded_choice(engine, spec, direction, device, other, bucket);
    if (!choice) continue;
    choice->nearest = other.name;
    choice->why = fmt::format("untuned on {} ({} multiprocessors); on {} ({}), the nearest device with a record, {}",
                              device.name, device.sm_count, other.name, other.sm_count, choice->why);
    return choice;
  }
  return std::nullopt;
}

}  // namespace

TuningKey tuning_key(const OpSpec& spec, Direction direction, const DeviceSpec& device, const ProblemBucket& bucket) {
  TuningKey key;
  key.op = spec.op();
  key.spec = key_text(spec);
  key.direction = to_string(direction);
  key.device = device.name;
  key.arch = device.arch;
  key.sm_count = device.sm_count;
  key.bucket = bucket.rows;
  key.small_batch = bucket.small_batch;
  return key;
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
                                   const ProblemBucket& bucket) {
  if (const FrozenChoices* const frozen = engine.frozen()) {
    return frozen_choice(*frozen, spec, direction, device, bucket);
  }
  std::optional<KernelChoice> choice = recorded_choice(engine, spec, direction, device, device, bucket);
  if (choice) {
    choice->tuned = true;
  } else {
    choice = nearest_choice(engine, spec, direction, device, bucket);
  }
  if (!choice) {
    choice.emplace();
    HSTUJIT_ASSIGN_OR_RETURN(choice->config, heuristic_config(spec, direction, device, heuristic_size(bucket)));
    choice->why = fmt::format("untuned on {}: the cost model's fastest estimate", device.name);
  }
  HSTUJIT_RETURN_IF_ERROR(apply_override(engine, spec, direction, device, &*choice));
  return *std::move(choice);
}

}  // namespace hstujit
