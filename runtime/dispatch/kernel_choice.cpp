#include "runtime/dispatch/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "compiler/support/json.h"
#include "compiler/support/text.h"
#include "runtime/dispatch/choice_look_up.h"
#include "runtime/engine/generator_keys.h"

namespace hstujit {

namespace {

// HSTUJIT_OVERRIDE: its fields in place of the choice's. What is wrong whatever they replace, the engine has refused;
// kUnsupported where they do not fit this choice.
Status apply_override(const Engine& engine, const Wanted& wanted, KernelChoice* choice) {
  const Json& patch = engine.override_fields();
  if (patch.is_null()) return {};
  Json json = to_json(choice->config);
  // Nothing of the choice stays where the override is of another family.
  const Result<const Skeleton*> other = find_skeleton(text_member(patch, "skeleton", choice->config.skeleton));
  if (other.ok() && (*other)->family() != choice->config.family()) json = Json::object();
  json.update(patch);
  const Result<KernelConfig> parsed = parse_kernel_config(json, std::string(environment_variable(Env::kOverride).name));
  if (!parsed.ok()) return Status(Code::kUnsupported, parsed.status().message());
  if (const std::string reason = refusal(wanted, *parsed); !reason.empty()) {
    return Status(Code::kUnsupported,
                  fmt::format("HSTUJIT_OVERRIDE is {}, which this kernel cannot have: {}", brief_json(patch), reason));
  }
  choice->config = *parsed;
  choice->source = ChoiceSource::kOverride;
  choice->exported = false;
  choice->why = "HSTUJIT_OVERRIDE over " + choice->why;
  return {};
}

// The choice that HSTUJIT_FROZEN says.
Result<KernelChoice> frozen_choice(const FrozenChoices& frozen, const Wanted& wanted) {
  KernelChoice choice;
  const KernelConfig* config = nullptr;
  std::vector<TuningKey> keys = wanted.keys(wanted.device);
  // A file of a library that had one choice for all batches serves both classes.
  if (const auto other = wanted.other_batches())
    std::ranges::copy(other->keys(wanted.device), std::back_inserter(keys));
  for (const TuningKey& key : keys) {
    if (config == nullptr) config = frozen.find(key);
  }
  const std::string_view op = wanted.spec.op(), direction = to_string(wanted.direction);
  if (config == nullptr) {
    const auto nearest = frozen.nearest(keys);
    return Status(Code::kCacheMiss,
                  fmt::format("HSTUJIT_FROZEN is {}, which has no choice for {} {}, bucket {}, on {} ({}, {} "
                              "multiprocessors): {}; make it anew with hstujit freeze, for this device and from a "
                              "config that lists this instance",
                              frozen.origin(), op, direction, to_string(wanted.bucket), wanted.device.name,
                              wanted.device.arch, wanted.device.sm_count,
                              nearest ? "its nearest choice " + nearest->sentence()
                                      : fmt::format("it has none of {} at all", op)));
  }
  if (const std::string reason = refusal(wanted, *config); !reason.empty()) {
    return Status(Code::kUnsupported,
                  fmt::format("HSTUJIT_FROZEN is {}, whose choice for {} {}, bucket {}, cannot run on {}: {}",
                              frozen.origin(), op, direction, to_string(wanted.bucket), wanted.device.name, reason));
  }
  choice.config = *config;
  choice.source = ChoiceSource::kFrozen;
  choice.tuned = true;
  choice.why = fmt::format("frozen in {}, {}", frozen.origin(), shown_digest(frozen.checksum()));
  return choice;
}

}  // namespace

std::string config_refusal(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                           const Restriction& restriction, const KernelConfig& config) {
  const Result<const Skeleton*> skeleton = find_skeleton(config.skeleton);
  if (!skeleton.ok()) return skeleton.status().message();
  if (!(*skeleton)->serves(spec, direction))
    return fmt::format("{} is no template of {} {}", config.skeleton, spec.op(), to_string(direction));
  const std::vector<Rejection> reasons = rejections(**skeleton, spec, config, device, restriction);
  return reasons.empty() ? std::string() : reasons.front().detail;
}

void KernelChoice::write(nlohmann::ordered_json& row) const {
  row["tuned"] = tuned;
  row["from"] = to_string(source);
  if (!nearest.empty()) row["nearest_device"] = nearest;
  for (const PassedOver& passed : passed_over) {
    row["passed_over"].push_back(
        {{"config", json_or_null(passed.config.text())}, {"reason", passed.reason}, {"detail", passed.detail}});
  }
}

void note_choice(Engine& engine, const OpSpec& spec, Direction direction, const TuningKey& key,
                 const KernelChoice& choice) {
  if (kind_of(choice.source) == ChoiceKind::kOverride) return;  // it is this process's, and the key's is another one
  const std::string generator = choice_generator(spec, direction);
  if (choice.exported) return engine.tuning().drop_choice(key, generator, /*noted_only=*/true);
  const bool estimated = kind_of(choice.source) == ChoiceKind::kEstimated;
  engine.tuning().note_choice({key, generator, key_text(choice.config), choice.source, choice.nearest,
                               choice.passed_over, false,
                               estimated ? choice_estimates(spec, direction) : std::string()});
}

Result<KernelChoice> choose_kernel(Engine& engine, const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                   const ProblemBucket& bucket, const Restriction& restriction, Keep keep) {
  // Overrides of a process are the same for all batches: their own choices would refuse different fields.
  const bool for_all = !engine.override_fields().is_null() && bucket.batch_class == BatchClass::kShortSequences;
  const Wanted wanted{spec, direction, device, for_all ? ProblemBucket(bucket.rows) : bucket, restriction, keep};
  if (const FrozenChoices* const frozen = engine.frozen()) return frozen_choice(*frozen, wanted);
  std::optional<KernelChoice> choice = decided_choice(engine, wanted);
  if (!choice) choice = borrowed_choice(engine, wanted);
  if (!choice) {
    HSTUJIT_ASSIGN_OR_RETURN(choice, untuned_choice(engine, wanted));
  }
  HSTUJIT_RETURN_IF_ERROR(apply_override(engine, wanted, &*choice));
  return *std::move(choice);
}

}  // namespace hstujit
